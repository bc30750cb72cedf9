import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { complete } from '../complete.ts';
import { parseFlags } from '../flags/parse-flags.ts';
import { decodeConfigFile } from './config-file.ts';
import { writeConfigYaml, writeConfigz } from './write-config.ts';

const effectiveOf = (argv: string[], file?: string) =>
  complete(
    parseFlags(argv, 'nodeplane agent').flags,
    file ? decodeConfigFile(file, 'nodeplane agent').given : undefined,
  );

const HEAD = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';

/** What kube-proxy 1.36.2 writes when it is started with --write-config-to alone. */
const DEFAULTS = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection:
  acceptContentTypes: ""
  burst: 10
  contentType: application/vnd.kubernetes.protobuf
  kubeconfig: ""
  qps: 5
clusterCIDR: ""
configSyncPeriod: 15m0s
conntrack:
  maxPerCore: 32768
  min: 131072
  tcpBeLiberal: false
  tcpCloseWaitTimeout: 1h0m0s
  tcpEstablishedTimeout: 24h0m0s
  udpStreamTimeout: 0s
  udpTimeout: 0s
detectLocal:
  bridgeInterface: ""
  interfaceNamePrefix: ""
detectLocalMode: ClusterCIDR
enableProfiling: false
healthzBindAddress: 0.0.0.0:10256
hostnameOverride: ""
iptables:
  localhostNodePorts: true
  masqueradeAll: false
  masqueradeBit: 14
  minSyncPeriod: 1s
  syncPeriod: 30s
ipvs:
  excludeCIDRs: null
  minSyncPeriod: 0s
  scheduler: ""
  strictARP: false
  syncPeriod: 0s
  tcpFinTimeout: 0s
  tcpTimeout: 0s
  udpTimeout: 0s
kind: KubeProxyConfiguration
logging:
  flushFrequency: 5s
  format: text
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
metricsBindAddress: 127.0.0.1:10249
mode: iptables
nftables:
  masqueradeAll: false
  masqueradeBit: 14
  minSyncPeriod: 0s
  syncPeriod: 0s
nodePortAddresses: null
oomScoreAdj: -999
portRange: ""
showHiddenMetricsForVersion: ""
winkernel:
  enableDSR: false
  forwardHealthCheckVip: false
  networkName: ""
  rootHnsEndpointName: ""
  sourceVip: ""
`;

describe('writeConfigYaml', () => {
  it('writes the defaults as kube-proxy does', () => {
    expect(writeConfigYaml(effectiveOf([]), 'kube-proxy')).toBe(DEFAULTS);
  });

  it('writes the same for an empty file', () => {
    expect(writeConfigYaml(effectiveOf([], HEAD), 'kube-proxy')).toBe(DEFAULTS);
  });

  it('quotes as Go does, sorts gates and lists fields that are left out when empty', () => {
    const yaml = writeConfigYaml(
      effectiveOf([
        '--metrics-bind-address=::1',
        '--hostname-override=007',
        '--feature-gates=NativeHistograms=true,AllAlpha=false',
        '--nodeport-addresses=10.0.0.0/8,fd00::/8',
        '--vmodule=runner*=4',
        '--log-text-split-stream',
        '--pod-bridge-interface=yes',
      ]),
      'kube-proxy',
    );
    for (const lines of [
      "metricsBindAddress: '[::1]:10249'\n",
      'hostnameOverride: "007"\n',
      'featureGates:\n  AllAlpha: false\n  NativeHistograms: true\n',
      'nodePortAddresses:\n- 10.0.0.0/8\n- fd00::/8\n',
      '  vmodule:\n  - filePattern: runner*\n    verbosity: 4\n',
      '    text:\n      infoBufferSize: "0"\n      splitStream: true\n',
      'bridgeInterface: "yes"\n',
    ]) {
      expect(yaml).toContain(lines);
    }
  });

  it.each(['iptables', 'ipvs', 'nftables'])('is read back as the same configuration in mode %s', (mode) => {
    const effective = effectiveOf([
      `--proxy-mode=${mode}`,
      '--masquerade-all',
      '--bind-address=fd00::1',
      '--iptables-min-sync-period=2s',
      '--ipvs-min-sync-period=3s',
      '--conntrack-max-per-core=0',
      '--iptables-localhost-nodeports=false',
      '--log-level=warn',
    ]);
    const yaml = writeConfigYaml(effective, 'nodeplane agent');
    expect(effectiveOf([], yaml)).toEqual(effective);
  });

  it.each([
    ['iptables', { iptables: [true, '5s', '2s'], ipvs: [undefined, '0s', '0s'], nftables: [false, '0s', '0s'] }],
    ['ipvs', { iptables: [true, '0s', '0s'], ipvs: [undefined, '6s', '3s'], nftables: [false, '0s', '0s'] }],
    ['nftables', { iptables: [false, '0s', '0s'], ipvs: [undefined, '0s', '0s'], nftables: [true, '7s', '4s'] }],
  ])('clears what is not in effect in mode %s', (mode, expected) => {
    const file = `${HEAD}mode: ${mode}
iptables: {masqueradeAll: true, syncPeriod: 5s, minSyncPeriod: 2s}
ipvs: {syncPeriod: 6s, minSyncPeriod: 3s}
nftables: {masqueradeAll: true, syncPeriod: 7s, minSyncPeriod: 4s}
`;
    const written = parse(writeConfigYaml(effectiveOf([], file), 'kube-proxy'));
    const sections = ['iptables', 'ipvs', 'nftables'].map((name) => {
      const { masqueradeAll, syncPeriod, minSyncPeriod } = written[name];
      return [name, [masqueradeAll, syncPeriod, minSyncPeriod]];
    });
    expect(Object.fromEntries(sections)).toEqual(expected);
  });

  it('writes our section only as nodeplane agent', () => {
    expect(parse(writeConfigYaml(effectiveOf([]), 'kube-proxy'))).not.toHaveProperty('nodeplane');
    expect(parse(writeConfigYaml(effectiveOf(['--iptables-variant=nft']), 'nodeplane agent')).nodeplane).toEqual({
      manifests: '',
      iptablesVariant: 'nft',
      serviceProxyName: '',
      logLevel: '',
      serviceTrafficMetrics: 0,
      externalIPCIDRs: null,
      localhostNodePorts: false,
      statusBindAddress: '',
      procSysRoot: '/proc/sys',
      configChangeSpread: '1m0s',
      agentLockDir: '/run/nodeplane',
      migrationAnnotation: false,
      routes: {
        mode: 'none',
        tunnel: 'vxlan',
        vni: 1,
        port: 8472,
        mtu: 0,
        interface: '',
        wireguard: { port: 51820, keepalive: 0, keyFile: '/var/lib/nodeplane/wireguard.key' },
        masquerade: { cidrs: ['ipv4', 'ipv6'], nonMasqueradeCIDRs: null, randomFully: true },
        clearNetworkUnavailable: true,
        flannel: { annotations: false, netConf: '', subnetFile: '' },
      },
      pools: { podCIDRsFrom: 'node', cidrs: null, blockSize: 26, blockSizeIPv6: 122, reclaimAfter: '15m0s' },
      cni: {
        enabled: false,
        binDir: '/opt/cni/bin',
        confDir: '/etc/cni/net.d',
        conflist: '',
        podCIDRs: null,
        dataDir: '/var/lib/cni/networks',
        socket: '/run/nodeplane/cni.sock',
        spoolDir: '/var/lib/nodeplane/cni/spool',
        macvlan: { namespaces: null, masters: ['default'], mode: 'private', ipam: '', routes: null },
      },
    });
  });
});

describe('writeConfigz', () => {
  it('answers what kube-proxy 1.36.2 answered with this file, in the same order', () => {
    const file = `${HEAD}clientConnection: {kubeconfig: /var/lib/kube-proxy/kubeconfig.conf}
clusterCIDR: 10.244.0.0/16
mode: nftables
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`;
    // Recorded from /configz.
    const recorded =
      '{"kubeproxy.config.k8s.io":{"kind":"KubeProxyConfiguration","apiVersion":"kubeproxy.config.k8s.io/v1alpha1",' +
      '"clientConnection":{"kubeconfig":"/var/lib/kube-proxy/kubeconfig.conf","acceptContentTypes":"",' +
      '"contentType":"application/vnd.kubernetes.protobuf","qps":5,"burst":10},' +
      '"logging":{"format":"text","flushFrequency":"5s","verbosity":2,' +
      '"options":{"text":{"infoBufferSize":"0"},"json":{"infoBufferSize":"0"}}},' +
      '"hostnameOverride":"n1","bindAddress":"0.0.0.0","healthzBindAddress":"0.0.0.0:10256",' +
      '"metricsBindAddress":"127.0.0.1:10249","bindAddressHardFail":false,"enableProfiling":false,' +
      '"showHiddenMetricsForVersion":"","mode":"nftables",' +
      '"iptables":{"masqueradeBit":14,"masqueradeAll":false,"localhostNodePorts":true,"syncPeriod":"0s","minSyncPeriod":"0s"},' +
      '"ipvs":{"syncPeriod":"0s","minSyncPeriod":"0s","scheduler":"","excludeCIDRs":null,"strictARP":false,' +
      '"tcpTimeout":"0s","tcpFinTimeout":"0s","udpTimeout":"0s"},' +
      '"nftables":{"masqueradeBit":14,"masqueradeAll":false,"syncPeriod":"30s","minSyncPeriod":"1s"},' +
      '"winkernel":{"networkName":"","sourceVip":"","enableDSR":false,"rootHnsEndpointName":"","forwardHealthCheckVip":false},' +
      '"detectLocalMode":"ClusterCIDR","detectLocal":{"bridgeInterface":"","interfaceNamePrefix":""},' +
      '"clusterCIDR":"10.244.0.0/16","nodePortAddresses":["primary"],"oomScoreAdj":-999,' +
      '"conntrack":{"maxPerCore":0,"min":131072,"tcpEstablishedTimeout":"0s","tcpCloseWaitTimeout":"0s",' +
      '"tcpBeLiberal":false,"udpTimeout":"0s","udpStreamTimeout":"0s"},"configSyncPeriod":"15m0s","portRange":""}}';
    expect(writeConfigz(effectiveOf(['--hostname-override=n1', '-v2'], file), 'kube-proxy')).toBe(recorded);
  });
});

it('what the file switches off or empties stays so', () => {
  const routes = 'nodeplane: {routes: {clearNetworkUnavailable: false, masquerade: {cidrs: [], randomFully: false}}}\n';
  expect(effectiveOf([], HEAD + routes).nodeplane.routes).toMatchObject({
    clearNetworkUnavailable: false,
    masquerade: { cidrs: [], randomFully: false },
  });
});
