import { HEALTHZ_PORT, METRICS_PORT } from '../file/defaults.ts';
import { boolean, port, serverUrl, text } from '../values/scalar-types.ts';
import { type FlagSpec, fieldFlag, processFlag } from './flag-spec.ts';
import { OWN_FLAGS } from './own-flags.ts';
import { versionRequest } from './version-flag.ts';

const FROM_FILE_TOO = { besideFile: true } as const;
const IGNORED = { ignored: true } as const;

/**
 * Every flag of kube-proxy 1.36 on Linux with the field it sets, and our own at the end (own-flags.ts). Types and
 * defaults are those of the fields unless stated. Not here: the Windows flags, which kube-proxy refuses on Linux too.
 */
export const FLAGS = {
  config: processFlag(
    text,
    'Configuration file to read. All flags that set the same things are ignored then',
    FROM_FILE_TOO,
  ),
  'write-config-to': processFlag(text, 'Write the configuration in effect to this file and exit', FROM_FILE_TOO),
  cleanup: processFlag(boolean, 'Remove the rules of every mode and exit', FROM_FILE_TOO),
  'init-only': processFlag(
    boolean,
    'Do only what needs more privileges (kernel modules, sysctls, with --cni the plugin) and exit. A second process can then do the rest with fewer',
    FROM_FILE_TOO,
  ),
  master: processFlag(serverUrl, 'URL of the API server, in place of the one in the kubeconfig', FROM_FILE_TOO),
  kubeconfig: fieldFlag(
    'clientConnection.kubeconfig',
    'Kubeconfig file with the way to the API server. Without it and --master, NODEPLANE_API_SERVER, the kubeconfig that kubeadm gives kube-proxy and the service account of the pod are looked for, in this order',
  ),
  'kube-api-content-type': fieldFlag('clientConnection.contentType', 'Media type of requests to the API server'),
  'kube-api-qps': fieldFlag('clientConnection.qps', 'Requests a second to the API server, in the long run'),
  'kube-api-burst': fieldFlag('clientConnection.burst', 'Requests to the API server that may go out at once'),
  'hostname-override': fieldFlag(
    'hostnameOverride',
    "Name of this machine's Node object, if it is not the host name. Beats the file",
    { besideFile: true, ownAlias: 'node-name' },
  ),
  'bind-address': fieldFlag(
    'bindAddress',
    'IP address of this node, in place of the one in its Node object; it also decides the primary family. 0.0.0.0 and :: leave both to the Node object',
    { emptyIsUnset: true },
  ),
  'healthz-bind-address': fieldFlag('healthzBindAddress', 'IP and port of the health server', {
    fallback: `0.0.0.0:${HEALTHZ_PORT}`,
    emptyIsUnset: true,
  }),
  'metrics-bind-address': fieldFlag('metricsBindAddress', 'IP and port of the metrics server', {
    fallback: `127.0.0.1:${METRICS_PORT}`,
    emptyIsUnset: true,
  }),
  'bind-address-hard-fail': fieldFlag('bindAddressHardFail', 'Exit if one of the two servers cannot listen'),
  profiling: fieldFlag(
    'enableProfiling',
    'Serve profiles of the process on the metrics port, to clients on this machine: /debug/pprof/profile and /debug/pprof/heap',
  ),
  'show-hidden-metrics-for-version': fieldFlag(
    'showHiddenMetricsForVersion',
    'Show the metrics that were hidden in this release; only the previous minor release can be named',
  ),
  'feature-gates': fieldFlag('featureGates', 'Feature gates to set, as name=true or name=false'),
  'proxy-mode': fieldFlag('mode', 'How Services are made to work: iptables (also if empty), ipvs or nftables'),
  'iptables-masquerade-bit': fieldFlag(
    'iptables.masqueradeBit',
    'Bit of the packet mark (0 to 31) that asks for masquerading, in the iptables and ipvs modes',
  ),
  'masquerade-all': fieldFlag(
    'iptables.masqueradeAll',
    'Masquerade everything that goes to a ClusterIP, in every mode',
  ),
  'iptables-localhost-nodeports': fieldFlag(
    'iptables.localhostNodePorts',
    'Let processes of the node reach NodePorts at 127.0.0.1 (iptables mode, IPv4)',
  ),
  'iptables-sync-period': fieldFlag(
    'iptables.syncPeriod',
    'Time between two looks at the kernel for foreign changes, in the iptables and nftables modes',
  ),
  'iptables-min-sync-period': fieldFlag(
    'iptables.minSyncPeriod',
    'Shortest time between two syncs, in the iptables and nftables modes; 0 syncs at every change',
  ),
  'ipvs-sync-period': fieldFlag('ipvs.syncPeriod', 'As --iptables-sync-period, in ipvs mode'),
  // kube-proxy takes this default over from the iptables section, unlike the file's.
  'ipvs-min-sync-period': fieldFlag('ipvs.minSyncPeriod', 'As --iptables-min-sync-period, in ipvs mode', {
    fallback: 1000,
  }),
  'ipvs-scheduler': fieldFlag('ipvs.scheduler', 'Scheduler of the IPVS virtual servers; rr if empty'),
  'ipvs-exclude-cidrs': fieldFlag('ipvs.excludeCIDRs', 'IPVS virtual servers with these addresses are left alone'),
  'ipvs-strict-arp': fieldFlag(
    'ipvs.strictARP',
    'Answer ARP only on the interface that has the address (arp_ignore, arp_announce)',
  ),
  'ipvs-tcp-timeout': fieldFlag('ipvs.tcpTimeout', 'IPVS timeout of idle TCP connections; 0 leaves it alone'),
  'ipvs-tcpfin-timeout': fieldFlag(
    'ipvs.tcpFinTimeout',
    'IPVS timeout of TCP connections after a FIN; 0 leaves it alone',
  ),
  'ipvs-udp-timeout': fieldFlag('ipvs.udpTimeout', 'IPVS timeout of UDP flows; 0 leaves it alone'),
  'detect-local-mode': fieldFlag(
    'detectLocalMode',
    'How traffic of local pods is told: ClusterCIDR (also if empty), NodeCIDR, BridgeInterface or InterfaceNamePrefix',
  ),
  'pod-bridge-interface': fieldFlag(
    'detectLocal.bridgeInterface',
    'Bridge of the local pods, for the mode BridgeInterface',
  ),
  'pod-interface-name-prefix': fieldFlag(
    'detectLocal.interfaceNamePrefix',
    'First part of the names of the local pods’ interfaces, for the mode InterfaceNamePrefix',
  ),
  'cluster-cidr': fieldFlag(
    'clusterCIDR',
    'Pod addresses of the whole cluster: a CIDR, or one of each family with a comma',
  ),
  'nodeport-addresses': fieldFlag(
    'nodePortAddresses',
    'Local addresses that answer on NodePorts: CIDRs, or primary for the addresses of the Node object. Empty means all (primary in nftables mode)',
  ),
  'oom-score-adj': fieldFlag('oomScoreAdj', 'Value for oom_score_adj of this process (-1000 to 1000)'),
  'conntrack-max-per-core': fieldFlag(
    'conntrack.maxPerCore',
    'Conntrack entries per CPU core, at most 1,048,576 altogether unless --conntrack-min asks for more; 0 leaves the limit alone, whatever --conntrack-min says',
  ),
  'conntrack-min': fieldFlag('conntrack.min', 'Conntrack entries to allow at least, whatever the number of cores'),
  'conntrack-tcp-timeout-established': fieldFlag(
    'conntrack.tcpEstablishedTimeout',
    'Conntrack timeout of idle TCP connections; 0 leaves it alone',
  ),
  'conntrack-tcp-timeout-close-wait': fieldFlag(
    'conntrack.tcpCloseWaitTimeout',
    'Conntrack timeout of TCP connections in CLOSE_WAIT; 0 leaves it alone',
  ),
  'conntrack-tcp-be-liberal': fieldFlag(
    'conntrack.tcpBeLiberal',
    'Let conntrack accept TCP packets outside of the window instead of calling them invalid',
  ),
  'conntrack-udp-timeout': fieldFlag(
    'conntrack.udpTimeout',
    'Conntrack timeout of unanswered UDP flows; 0 leaves it alone',
  ),
  'conntrack-udp-timeout-stream': fieldFlag(
    'conntrack.udpStreamTimeout',
    'Conntrack timeout of answered UDP flows; 0 leaves it alone',
  ),
  'config-sync-period': fieldFlag(
    'configSyncPeriod',
    'Time after which all objects of the API server are gone through again',
  ),
  v: fieldFlag('logging.verbosity', 'How much to log: from 1 on these flags, from 4 on the debug level too', {
    shorthand: 'v',
    besideFile: true,
  }),
  vmodule: fieldFlag('logging.vmodule', 'How much to log by source file, as pattern=number', FROM_FILE_TOO),
  'logging-format': fieldFlag('logging.format', 'Form of the log: text or json', FROM_FILE_TOO),
  'log-flush-frequency': fieldFlag(
    'logging.flushFrequency',
    'Longest time that log lines are held back',
    FROM_FILE_TOO,
  ),
  'log-text-split-stream': fieldFlag(
    'logging.options.text.splitStream',
    'Text log: errors to stderr, the rest to stdout (needs the gate LoggingAlphaOptions)',
    FROM_FILE_TOO,
  ),
  'log-text-info-buffer-size': fieldFlag(
    'logging.options.text.infoBufferSize',
    'Text log with split streams: buffer of stdout (needs the gate LoggingAlphaOptions)',
    FROM_FILE_TOO,
  ),
  'log-json-split-stream': fieldFlag(
    'logging.options.json.splitStream',
    'JSON log: errors to stderr, the rest to stdout (needs the gate LoggingAlphaOptions)',
    FROM_FILE_TOO,
  ),
  'log-json-info-buffer-size': fieldFlag(
    'logging.options.json.infoBufferSize',
    'JSON log with split streams: buffer of stdout (needs the gate LoggingAlphaOptions)',
    FROM_FILE_TOO,
  ),
  // Both come with a library that kube-proxy contains; it does nothing with them.
  'boot-id-file': processFlag(text, 'Has no effect', IGNORED),
  'machine-id-file': processFlag(text, 'Has no effect', IGNORED),
  'healthz-port': processFlag(
    port,
    'Port of the health server if --healthz-bind-address names none; 0 switches it off',
    {
      fallback: HEALTHZ_PORT,
      deprecated: 'use --healthz-bind-address',
    },
  ),
  'metrics-port': processFlag(port, 'Port of the metrics server if --metrics-bind-address names none', {
    fallback: METRICS_PORT,
    deprecated: 'use --metrics-bind-address',
  }),
  version: processFlag(versionRequest, 'Print the version and exit; --version=raw prints more', {
    bareValue: 'line',
    besideFile: true,
  }),
  help: processFlag(boolean, 'Print this help and exit', { shorthand: 'h', besideFile: true }),
  ...OWN_FLAGS,
} as const;

/** The name of a flag, without its dashes. */
export type FlagName = keyof typeof FLAGS;
/** What a flag is read to. */
export type FlagValue<N extends FlagName> = (typeof FLAGS)[N] extends FlagSpec<infer T> ? T : never;

/** All of them, in the order in which they are declared. */
export const FLAG_NAMES = Object.keys(FLAGS) as readonly FlagName[];

/** The declaration of a flag, for code that treats all flags alike. */
export function flagNamed(name: FlagName): FlagSpec<unknown> {
  return FLAGS[name];
}
