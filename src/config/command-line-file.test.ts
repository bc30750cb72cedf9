import { describe, expect, it } from 'vitest';
import { configOf, HEAD, read } from '../../test/fakes/command-line.ts';
import { parseCidr } from '../core/index.ts';
import { formatBindAddress } from './values/bind-address.ts';

describe('a file', () => {
  it('replaces all flags but a few', () => {
    const config = configOf(
      [
        '--proxy-mode=ipvs',
        '--kubeconfig=/flag',
        '--cluster-cidr=10.0.0.0/8',
        '--conntrack-min=1',
        '--feature-gates=NoSuchGate=true',
        '--healthz-port=0',
        '--master=https://flag',
        '--hostname-override=Flag',
        '-v=3',
        '--logging-format=json',
      ],
      'mode: nftables\nclientConnection: {kubeconfig: /file}\nhostnameOverride: file\nlogging: {verbosity: 9, flushFrequency: 2000000000}\n',
    );
    expect(config).toMatchObject({
      mode: 'nftables',
      nodeName: 'flag',
      apiServer: { kubeconfig: '/file', master: 'https://flag' },
      detectLocal: { mode: 'ClusterCIDR', cidrs: [] },
      conntrack: { min: 131072 },
      logging: { verbosity: 3, format: 'json' },
      effective: { logging: { flushFrequency: { ms: 2000 } } },
    });
    expect(config.healthzBindAddress).toBeDefined();
  });

  it('keeps its own log settings where no flag was really given', () => {
    const { logging } = configOf(
      ['--vmodule=a=1'],
      'logging: {verbosity: 5, vmodule: [{filePattern: b, verbosity: 2}]}\n',
    ).effective;
    expect(logging.verbosity).toBe(5);
    // Flag entries come first.
    expect(logging.vmodule).toEqual([
      { filePattern: 'a', verbosity: 1 },
      { filePattern: 'b', verbosity: 2 },
    ]);
  });

  it.each<[string, object]>([
    ['', { syncPeriodMs: 30_000, minSyncPeriodMs: 1000, nodeName: 'node-1', oomScoreAdj: -999 }],
    // Zero is "not set" for plain values, and a value where kube-proxy has a pointer.
    [
      'iptables: {syncPeriod: 0s, minSyncPeriod: 0s, masqueradeBit: 0, localhostNodePorts: false}',
      { syncPeriodMs: 30_000, minSyncPeriodMs: 1000, masqueradeBit: 0, localhostNodePorts: 'never' },
    ],
    ['mode: ipvs', { syncPeriodMs: 30_000, minSyncPeriodMs: 0, localhostNodePorts: 'never' }],
    [
      'mode: ipvs\nipvs: {syncPeriod: 3s}\niptables: {masqueradeAll: true, syncPeriod: 9s}',
      { syncPeriodMs: 3000, masqueradeAll: true },
    ],
    [
      'mode: nftables\niptables: {masqueradeAll: true, masqueradeBit: 1}',
      { masqueradeAll: false, masqueradeBit: 14, nodePortAddresses: 'primary' },
    ],
    [
      'mode: nftables\nnftables: {masqueradeAll: true, masqueradeBit: 5, syncPeriod: 2m, minSyncPeriod: 3s}',
      { masqueradeAll: true, masqueradeBit: 5, syncPeriodMs: 120_000, minSyncPeriodMs: 3000 },
    ],
    ['mode: nftables\nnodePortAddresses: []', { nodePortAddresses: 'primary' }],
    [
      'clientConnection: {qps: 0, burst: 0, contentType: ""}\nconfigSyncPeriod: 0s',
      { apiServer: { qps: 5, burst: 10, protobuf: true } },
    ],
    ['clientConnection: {contentType: application/json}', { apiServer: { protobuf: false } }],
    ['clientConnection: {acceptContentTypes: "application/json"}', { apiServer: { protobuf: false } }],
    [
      'conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s}',
      { conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeoutMs: 0, tcpCloseWaitTimeoutMs: 3_600_000 } },
    ],
    ['hostnameOverride: " FILE "', { nodeName: 'file' }],
    [
      'windowsRunAsService: true\nwinkernel: {enableDSR: true, sourceVip: "::1"}\nportRange: "1-2"',
      { mode: 'iptables' },
    ],
    [
      'detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: br0}',
      { detectLocal: { mode: 'BridgeInterface', bridgeInterface: 'br0' } },
    ],
    [
      'detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: veth}',
      { detectLocal: { mode: 'InterfaceNamePrefix', interfaceNamePrefix: 'veth' } },
    ],
  ])('%j', (file, expected) => {
    expect(configOf([], `${file}\n`)).toMatchObject(expected);
  });

  it.each([
    ['', '0.0.0.0:10256', '127.0.0.1:10249'],
    ['bindAddress: "fd00::1"', '[::]:10256', '[::1]:10249'],
    ['bindAddress: "::"\nhealthzBindAddress: ""', '[::]:10256', '[::1]:10249'],
    ['healthzBindAddress: 10.0.0.1\nmetricsBindAddress: "[fd00::1]"', '10.0.0.1:10256', '[fd00::1]:10249'],
    ['healthzBindAddress: 10.0.0.1:1\nmetricsBindAddress: "[fd00::1]:2"', '10.0.0.1:1', '[fd00::1]:2'],
  ])('%j puts the servers at %s and %s', (file, healthz, metrics) => {
    const config = configOf([], `${file}\n`);
    expect(formatBindAddress(config.healthzBindAddress!)).toBe(healthz);
    expect(formatBindAddress(config.metricsBindAddress)).toBe(metrics);
  });

  it('is handed back with its path, and complaints that do not keep it from being used', () => {
    const outcome = read(['--config=/c'], 'mode: ipvs\nnodeplane: {logLevel: debug}\n---\n{}\n');
    if (outcome.action !== 'run') throw new Error(outcome.action);
    expect(outcome.configFile).toEqual({
      path: '/c',
      text: `${HEAD}mode: ipvs\nnodeplane: {logLevel: debug}\n---\n{}\n`,
    });
    expect(outcome.messages.filter(({ verbosity }) => verbosity === 0)).toEqual([
      {
        level: 'warn',
        verbosity: 0,
        text: 'Using lenient decoding as strict decoding failed: unknown field "nodeplane"',
      },
      {
        level: 'warn',
        verbosity: 0,
        text: 'The configuration file has 1 more YAML document(s); only the first is read',
      },
    ]);
    expect(outcome.config.logging.level).toBe('info');
  });
});

describe('our own settings', () => {
  const own = { program: 'nodeplane agent' } as const;
  const file = 'nodeplane: {manifests: /file, iptablesVariant: legacy, serviceProxyName: other, logLevel: error}\n';

  it('come from the file', () => {
    expect(configOf([], file, own)).toMatchObject({
      manifests: '/file',
      iptablesVariant: 'legacy',
      serviceProxyName: 'other',
      logging: { level: 'error' },
    });
  });

  it('come from flags first', () => {
    const argv = [
      '--manifests=/flag',
      '--iptables-variant=nft',
      '--service-proxy-name=',
      '--log-level=warn',
      '--node-name=N',
    ];
    expect(configOf(argv, file, own)).toMatchObject({
      manifests: '/flag',
      iptablesVariant: 'nft',
      serviceProxyName: '',
      logging: { level: 'warn' },
      nodeName: 'n',
    });
  });

  it('leave the pods’ network alone unless it is asked for', () => {
    expect(configOf(['--cni-bin-dir=/b'], '', own).cni).toBeUndefined();
    expect(configOf(['--external-ip-cidrs=203.0.113.0/24,2001:db8::/64'], '', own).externalIpCidrs).toEqual(
      ['203.0.113.0/24', '2001:db8::/64'].map(parseCidr),
    );
    expect(configOf([], '', own).externalIpCidrs).toEqual([]);
    expect(configOf(['--cni', '--cni-pod-cidrs=10.1.0.0/24,fd00::/64', '--cni-socket=/s'], '', own).cni).toEqual({
      binDir: '/opt/cni/bin',
      confDir: '/etc/cni/net.d',
      conflist: '',
      dataDir: '/var/lib/cni/networks',
      socket: '/s',
      spoolDir: '/var/lib/nodeplane/cni/spool',
      podCidrs: [parseCidr('10.1.0.0/24'), parseCidr('fd00::/64')],
    });
    const wrong = read(['--cni', '--cni-bin-dir=b', '--cni-pod-cidrs=x', `--cni-socket=/${'s'.repeat(107)}`], '', own);
    expect(wrong).toMatchObject({
      action: 'refuse',
      output: {
        stderr: expect.stringMatching(/binDir.*"b" is no absolute path.*socket.*longer than 107 bytes/s),
      },
    });
  });
});
