import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { warningsOf } from '../../test/samples/config-warnings.ts';
import { readCommandLine } from './command-line.ts';
import { ALL_FIELDS, type FieldPath, isField, type Section } from './file/schema.ts';
import { FLAG_NAMES, type FlagName, flagNamed } from './flags/flags.ts';
import { NO_EFFECT } from './no-effect.ts';

/** Of a field or flag, who acts on it (a file below src/) and under which name it is found there. */
type Reader = readonly [file: string, name: string];

const VALIDATE = 'config/check/validate.ts';
const PARTS = 'agent/make-parts.ts';
const SERVERS = 'agent/http/agent-servers.ts';
const SERVICES = 'agent/services/services-part.ts';
const SOURCE = 'agent/object-source.ts';
const SYSCTLS = 'agent/services/conntrack/sysctls.ts';
const CNI_PART = 'agent/cni/cni-part.ts';
const POOL_RANGES = 'agent/pools/sources/pool-ranges.ts';
const MACVLAN = 'cni/config/macvlan-config.ts';

/**
 * Who reads what has an effect. A field or flag that is neither here nor in NO_EFFECT fails: an option that is accepted has an
 * effect, or says at the start that it has none.
 */
const READERS: Readonly<Record<string, Reader>> = {
  featureGates: [SERVERS, "isEnabled(config.featureGates, 'ComponentFlagz')"],
  'clientConnection.kubeconfig': [SOURCE, 'kubeconfig'],
  'clientConnection.qps': [SOURCE, 'qps'],
  'clientConnection.acceptContentTypes': [VALIDATE, 'acceptContentTypes'],
  'clientConnection.contentType': [VALIDATE, 'contentType'],
  'clientConnection.burst': [SOURCE, 'burst'],
  'logging.format': ['agent/logger.ts', 'format'],
  'logging.verbosity': ['agent/run.ts', 'config.logging.verbosity'],
  'nodeplane.externalIPCIDRs': [VALIDATE, 'externalIPCIDRs'],
  hostnameOverride: ['config/command-line.ts', 'effective.hostnameOverride'],
  bindAddress: ['agent/services/node-check.ts', 'nodeIp'],
  healthzBindAddress: [SERVERS, 'healthzBindAddress'],
  metricsBindAddress: [SERVERS, 'metricsBindAddress'],
  bindAddressHardFail: [SERVERS, 'config.bindAddressHardFail'],
  enableProfiling: [SERVERS, 'config.profiling'],
  mode: [SERVICES, 'MODES[config.mode]'],
  'iptables.masqueradeBit': [VALIDATE, 'effective[masquerading]'],
  'iptables.masqueradeAll': [VALIDATE, 'effective[masquerading]'],
  'iptables.localhostNodePorts': [VALIDATE, 'iptables.localhostNodePorts'],
  'iptables.syncPeriod': [VALIDATE, 'effective[periods]'],
  'iptables.minSyncPeriod': [VALIDATE, 'effective[periods]'],
  'ipvs.syncPeriod': [VALIDATE, 'effective[periods]'],
  'ipvs.minSyncPeriod': [VALIDATE, 'effective[periods]'],
  'ipvs.scheduler': ['proxy/ipvs/mode/ipvs-mode.ts', 'scheduler'],
  'ipvs.excludeCIDRs': ['proxy/ipvs/mode/ipvs-mode.ts', 'excludeCidrs'],
  'ipvs.strictARP': ['proxy/ipvs/settings.ts', 'strictArp && STRICT_ARP'],
  'ipvs.tcpTimeout': ['proxy/ipvs/settings.ts', 'tcpTimeoutMs'],
  'ipvs.tcpFinTimeout': ['proxy/ipvs/settings.ts', 'tcpFinTimeoutMs'],
  'ipvs.udpTimeout': ['proxy/ipvs/settings.ts', 'udpTimeoutMs'],
  'nftables.masqueradeBit': [VALIDATE, 'effective[masquerading]'],
  'nftables.masqueradeAll': [VALIDATE, 'effective[masquerading]'],
  'nftables.syncPeriod': [VALIDATE, 'effective[periods]'],
  'nftables.minSyncPeriod': [VALIDATE, 'effective[periods]'],
  detectLocalMode: ['proxy/plan/node-plan.ts', 'detectLocal'],
  'detectLocal.bridgeInterface': ['proxy/plan/node-plan.ts', 'bridgeInterface'],
  'detectLocal.interfaceNamePrefix': ['proxy/plan/node-plan.ts', 'interfaceNamePrefix'],
  clusterCIDR: ['proxy/plan/node-plan.ts', 'detection.cidrs'],
  nodePortAddresses: ['proxy/plan/node-plan.ts', 'nodePortAddresses'],
  oomScoreAdj: ['agent/node-setup.ts', 'config.oomScoreAdj'],
  'conntrack.maxPerCore': [SYSCTLS, 'maxPerCore'],
  'conntrack.min': [SYSCTLS, '.min'],
  'conntrack.tcpEstablishedTimeout': [SYSCTLS, 'tcpEstablishedTimeoutMs'],
  'conntrack.tcpCloseWaitTimeout': [SYSCTLS, 'tcpCloseWaitTimeoutMs'],
  'conntrack.tcpBeLiberal': [SYSCTLS, 'tcpBeLiberal'],
  'conntrack.udpTimeout': [SYSCTLS, 'udpTimeoutMs'],
  'conntrack.udpStreamTimeout': [SYSCTLS, 'udpStreamTimeoutMs'],
  'nodeplane.manifests': [SOURCE, 'config.manifests'],
  'nodeplane.iptablesVariant': ['proxy/rules/usable-variants.ts', 'iptablesVariant'],
  'nodeplane.serviceProxyName': [SERVICES, 'config.serviceProxyName'],
  'nodeplane.logLevel': ['agent/logger.ts', 'level'],
  'nodeplane.serviceTrafficMetrics': ['agent/services/traffic/begin-traffic.ts', 'serviceTrafficMetrics'],
  'nodeplane.configChangeSpread': ['agent/run.ts', 'config.configChangeSpreadMs'],
  'nodeplane.agentLockDir': ['agent/run.ts', 'config.agentLockDir'],
  'nodeplane.migrationAnnotation': [PARTS, 'config.migrationAnnotation'],
  'nodeplane.localhostNodePorts': [VALIDATE, 'nodeplane.localhostNodePorts'],
  'nodeplane.statusBindAddress': ['agent/http/agent-servers.ts', 'statusBindAddress'],
  'nodeplane.procSysRoot': ['agent/run.ts', 'config.procSysRoot'],
  'nodeplane.routes.mode': ['config/check/validate-routes.ts', 'section.mode'],
  'nodeplane.routes.vni': ['routes/plan/tunnel.ts', 'vni'],
  'nodeplane.routes.port': ['routes/plan/tunnel.ts', 'port'],
  'nodeplane.routes.mtu': ['routes/plan/tunnel.ts', 'mtu: wanted'],
  'nodeplane.routes.tunnel': ['routes/plan/tunnel.ts', "tunnel = 'vxlan'"],
  'nodeplane.routes.wireguard.port': ['routes/wireguard/wireguard-tunnel.ts', 'port'],
  'nodeplane.routes.wireguard.keepalive': ['routes/wireguard/peer-diff.ts', 'settings.keepaliveSeconds'],
  'nodeplane.routes.wireguard.keyFile': ['agent/routes/wireguard-part.ts', 'keyFile'],
  'nodeplane.routes.clearNetworkUnavailable': ['agent/routes/routes-part.ts', 'clearNetworkUnavailable'],
  'nodeplane.routes.flannel.annotations': ['agent/routes/routes-part.ts', 'flannel.annotations'],
  'nodeplane.routes.flannel.netConf': ['config/file/flannel-net-conf.ts', 'nodeplane.routes.flannel.netConf'],
  'nodeplane.routes.flannel.subnetFile': ['agent/routes/routes-part.ts', 'subnetFile'],
  'nodeplane.routes.interface': ['routes/sync/grounds.ts', 'interfaceName'],
  'nodeplane.routes.masquerade.cidrs': ['routes/rules/node-elements.ts', 'ownPods'],
  'nodeplane.routes.masquerade.nonMasqueradeCIDRs': ['agent/routes/rule-settings.ts', 'exempt'],
  'nodeplane.routes.masquerade.randomFully': ['routes/rules/masquerade-chains.ts', 'randomFully'],
  'nodeplane.pools.podCIDRsFrom': ['config/check/validate-pools.ts', 'podCIDRsFrom'],
  'nodeplane.pools.cidrs': [POOL_RANGES, 'cidrs'],
  'nodeplane.pools.blockSize': [POOL_RANGES, 'blockSizes'],
  'nodeplane.pools.blockSizeIPv6': [POOL_RANGES, 'blockSizes'],
  'nodeplane.pools.reclaimAfter': [POOL_RANGES, 'reclaimMs'],
  'nodeplane.cni.enabled': [PARTS, 'config.cni'],
  'nodeplane.cni.binDir': [CNI_PART, 'binDir'],
  'nodeplane.cni.confDir': [CNI_PART, 'confDir'],
  'nodeplane.cni.conflist': [CNI_PART, 'conflist'],
  'nodeplane.cni.podCIDRs': ['agent/pools/pools-part.ts', 'podCidrs'],
  'nodeplane.cni.dataDir': [CNI_PART, 'dataDir'],
  'nodeplane.cni.socket': [CNI_PART, 'socket'],
  'nodeplane.cni.spoolDir': [CNI_PART, 'spoolDir'],
  'nodeplane.cni.macvlan.namespaces': [MACVLAN, "key, 'namespaces'"],
  'nodeplane.cni.macvlan.masters': [MACVLAN, "key, 'masters'"],
  'nodeplane.cni.macvlan.mode': [MACVLAN, "key, 'mode'"],
  'nodeplane.cni.macvlan.ipam': [MACVLAN, "key, 'ipam'"],
  'nodeplane.cni.macvlan.routes': ['agent/cni/server/macvlan-key.ts', 'settings.routes'],

  '--config': ['config/command-line.ts', 'flags.config'],
  '--write-config-to': ['config/command-line.ts', "flags['write-config-to']"],
  '--cleanup': ['config/command-line.ts', 'flags.cleanup'],
  '--init-only': ['config/command-line.ts', "flags['init-only']"],
  '--master': [SOURCE, 'master'],
  '--healthz-port': ['config/complete.ts', "ports['healthz-port']"],
  '--metrics-port': ['config/complete.ts', "ports['metrics-port']"],
  '--version': ['agent/agent.ts', 'config.reportedVersion'],
  '--help': ['config/command-line.ts', 'flags.help'],
};

function paths(section: Section, prefix = ''): string[] {
  return Object.entries(section).flatMap(([name, entry]) =>
    isField(entry) ? [`${prefix}${name}`] : paths(entry, `${prefix}${name}.`),
  );
}

const FIELDS = paths(ALL_FIELDS);
const PROCESS_FLAGS = FLAG_NAMES.filter((name) => flagNamed(name).path === undefined);

it.each(FIELDS)('%s has a reader, or is known to have none', (path) => {
  expect([path in READERS, path in NO_EFFECT].filter(Boolean)).toHaveLength(1);
});

it.each(PROCESS_FLAGS)('--%s has a reader, or is known to have none', (name) => {
  expect([`--${name}` in READERS, flagNamed(name).ignored].filter(Boolean)).toHaveLength(1);
});

it.each(Object.entries(READERS))('%s is read where the list says', (_option, [file, name]) => {
  expect(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8').includes(name)).toBe(true);
});

it('lists nothing that is gone', () => {
  const known = new Set([...FIELDS, ...PROCESS_FLAGS.map((name) => `--${name}`)]);
  expect([...Object.keys(READERS), ...Object.keys(NO_EFFECT)].filter((path) => !known.has(path))).toEqual([]);
});

const withoutEffect = Object.keys(NO_EFFECT) as FieldPath[];
const VALUES: Readonly<Partial<Record<FieldPath, string>>> = { showHiddenMetricsForVersion: '1.35' };
const ALPHA = 'feature-gates=LoggingAlphaOptions=true';

it.each(FLAG_NAMES.filter((name) => withoutEffect.includes(flagNamed(name).path!)))(
  '--%s says in the help and once at the start that it has no effect',
  (name: FlagName) => {
    const { path, type, bareValue } = flagNamed(name);
    const value =
      VALUES[path!] ?? { duration: '7s', size: '3Ki', 'pattern=number,...': 'a=3' }[type.placeholder] ?? 'x';
    const reason = NO_EFFECT[path!]!;
    const flag = bareValue === undefined ? `--${name}=${value}` : `--${name}`;
    expect(warningsOf([flag, `--${ALPHA}`])).toEqual([`${path} (--${name}) has no effect: ${reason}`]);

    const help = readCommandLine(['--help'], { program: 'kube-proxy', version: '', hostname: '', readFile: () => '' });
    if (help.action !== 'help') throw new Error(help.action);
    const [, described] = new RegExp(`^  --${name}\\b.*\n(.*)$`, 'm').exec(help.output.stdout)!;
    expect(described).toContain(`. No effect: ${reason}`);
  },
);

it('says so of fields of the file too, but not of a file that spells out the defaults', () => {
  const file = 'configSyncPeriod: 1m\nwindowsRunAsService: true\n';
  expect(warningsOf([], file)).toEqual([
    'configSyncPeriod (--config-sync-period) has no effect: every list is compared with what is known, and the rules with the kernel each sync period',
    'windowsRunAsService has no effect: it is for kube-proxy on Windows',
  ]);
  const defaults = `configSyncPeriod: 15m0s
logging: {flushFrequency: 5000000000, vmodule: [], options: {json: {infoBufferSize: "0"}}}
`;
  expect(warningsOf([], defaults)).toEqual([]);
});

it('says so of flags that kube-proxy takes for nothing, and of flags that a file replaces', () => {
  expect(warningsOf(['--boot-id-file=/x'])).toEqual([
    'Flag --boot-id-file has no effect: kube-proxy does nothing with it either',
  ]);
  expect(warningsOf(['--proxy-mode=ipvs', '-v=2', '--hostname-override=n', '--masquerade-all'], '')).toEqual([
    'The configuration file replaces these flags: --proxy-mode, --masquerade-all',
  ]);
});
