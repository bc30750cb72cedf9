import { HEALTHZ_PORT, METRICS_PORT } from '../file/defaults.ts';
import { boolean, int32, text } from '../values/scalar-types.ts';
import { type FlagSpec, fieldFlag, processFlag } from './flag-spec.ts';
import { versionRequest } from './version-flag.ts';

const FROM_FILE_TOO = { besideFile: true } as const;
const OWN = { own: true, besideFile: true } as const;
const IGNORED = { ignored: true } as const;

/**
 * Every flag of kube-proxy 1.36 on Linux with the field it sets, and our own at the end. Types and defaults are those of the
 * fields unless stated. Not here: the Windows flags, which kube-proxy refuses on Linux too.
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
    'Do only what needs full privileges (sysctls, checks of the kernel) and exit. A second process with CAP_NET_ADMIN alone can then do the rest',
    FROM_FILE_TOO,
  ),
  master: processFlag(text, 'URL of the API server, in place of the one in the kubeconfig', FROM_FILE_TOO),
  kubeconfig: fieldFlag(
    'clientConnection.kubeconfig',
    'Kubeconfig file with the way to the API server. Without it and --master, the service account of the pod is used',
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
    'Conntrack entries per CPU core; 0 leaves the limit alone',
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
    int32,
    'Port of the health server if --healthz-bind-address names none; 0 switches it off',
    {
      fallback: HEALTHZ_PORT,
      deprecated: 'use --healthz-bind-address',
    },
  ),
  'metrics-port': processFlag(int32, 'Port of the metrics server if --metrics-bind-address names none', {
    fallback: METRICS_PORT,
    deprecated: 'use --metrics-bind-address',
  }),
  version: processFlag(versionRequest, 'Print the version and exit; --version=raw prints more', {
    bareValue: 'line',
    besideFile: true,
  }),
  help: processFlag(boolean, 'Print this help and exit', { shorthand: 'h', besideFile: true }),
  manifests: fieldFlag(
    'nodeplane.manifests',
    'Directory of Kubernetes manifests (YAML or JSON) to read and follow, in place of an API server',
    OWN,
  ),
  'iptables-variant': fieldFlag(
    'nodeplane.iptablesVariant',
    'auto (the one in use on this machine), legacy or nft',
    OWN,
  ),
  'service-proxy-name': fieldFlag(
    'nodeplane.serviceProxyName',
    'Serve only Services whose label service.kubernetes.io/service-proxy-name has this value; empty: only those without the label',
    OWN,
  ),
  cni: fieldFlag(
    'nodeplane.cni.enabled',
    'Give pods their network: serve CNI requests, and install plugin and configuration for the container runtime',
    OWN,
  ),
  'cni-bin-dir': fieldFlag('nodeplane.cni.binDir', 'Directory where the container runtime looks for CNI plugins', OWN),
  'cni-conf-dir': fieldFlag(
    'nodeplane.cni.confDir',
    'Directory where the container runtime looks for CNI configurations',
    OWN,
  ),
  'cni-conflist': fieldFlag(
    'nodeplane.cni.conflist',
    'File with the network configuration list to install, in place of a bridge with masquerade',
    OWN,
  ),
  'cni-pod-cidrs': fieldFlag(
    'nodeplane.cni.podCIDRs',
    'Pod addresses of this node, in place of the podCIDRs of its Node object: CIDRs, each gives a pod one address',
    OWN,
  ),
  'cni-data-dir': fieldFlag('nodeplane.cni.dataDir', 'Directory of address reservations', OWN),
  'cni-socket': fieldFlag(
    'nodeplane.cni.socket',
    'Socket for the CNI plugin. The plugin looks for another one only if its environment has NODEPLANE_CNI_SOCKET',
    OWN,
  ),
  'cni-spool-dir': fieldFlag(
    'nodeplane.cni.spoolDir',
    'Directory where the CNI plugin keeps DEL requests while no agent runs; its NODEPLANE_CNI_SPOOL',
    OWN,
  ),
  'cni-macvlan-namespaces': fieldFlag(
    'nodeplane.cni.macvlan.namespaces',
    'Namespaces whose pods may have an interface macvlan0 on the network of the node, for which they ask by annotation nodeplane.io/assign-macvlan; * for all, empty for none',
    OWN,
  ),
  'cni-macvlan-masters': fieldFlag(
    'nodeplane.cni.macvlan.masters',
    'Interfaces of the node that macvlan0 may be on; default is that of the default route. The first is for pods that name none',
    OWN,
  ),
  'cni-macvlan-mode': fieldFlag(
    'nodeplane.cni.macvlan.mode',
    'What macvlan0 of different pods hear of each other: private (nothing), bridge, or vepa (what the switch sends back)',
    OWN,
  ),
  'cni-macvlan-ipam': fieldFlag(
    'nodeplane.cni.macvlan.ipam',
    'Plugin that gives macvlan0 its addresses, as JSON: {"type":"dhcp"}. Empty: pods do it themselves',
    OWN,
  ),
  'cni-macvlan-routes': fieldFlag(
    'nodeplane.cni.macvlan.routes',
    'CIDRs that pods with macvlan0 reach through the pod network, besides the node and the Service CIDRs that the API server tells',
    OWN,
  ),
  routes: fieldFlag(
    'nodeplane.routes.mode',
    'How pods on other nodes are reached: host-gw (nodes on the same link), vxlan, auto (vxlan where there is a router in between) or none (somebody else does it)',
    OWN,
  ),
  'routes-vni': fieldFlag('nodeplane.routes.vni', 'VXLAN network of the pods: the same on all nodes', OWN),
  'routes-port': fieldFlag('nodeplane.routes.port', 'UDP port of VXLAN: the same on all nodes', OWN),
  'routes-mtu': fieldFlag(
    'nodeplane.routes.mtu',
    'Largest packet through the VXLAN device; 0 for what the network between the nodes carries',
    OWN,
  ),
  'routes-interface': fieldFlag(
    'nodeplane.routes.interface',
    'Interface that leads to the other nodes; if empty, the one that has the node’s InternalIP',
    OWN,
  ),
  'masquerade-cidrs': fieldFlag(
    'nodeplane.routes.masquerade.cidrs',
    'With --routes: whose packets carry the node’s address when they leave the cluster: ipv4 and ipv6 for the pods of this node, CIDRs, or none',
    OWN,
  ),
  'non-masquerade-cidrs': fieldFlag(
    'nodeplane.routes.masquerade.nonMasqueradeCIDRs',
    'With --routes: CIDRs to which packets keep their source, besides the pods of all nodes and --cluster-cidr',
    OWN,
  ),
  'masquerade-random-fully': fieldFlag(
    'nodeplane.routes.masquerade.randomFully',
    'Choose the source ports of what --masquerade-cidrs masquerades at random, so that parallel connections do not meet',
    OWN,
  ),
  'routes-clear-network-unavailable': fieldFlag(
    'nodeplane.routes.clearNetworkUnavailable',
    'With --cni: set condition NetworkUnavailable of the own Node to False when the routes are there, if the Node has the condition',
    OWN,
  ),
  'routes-flannel-annotations': fieldFlag(
    'nodeplane.routes.flannel.annotations',
    'Write the annotations of the own Node by which nodes of flannel reach its pods',
    OWN,
  ),
  'routes-flannel-net-conf': fieldFlag(
    'nodeplane.routes.flannel.netConf',
    'File net-conf.json of flannel: how pods on other nodes are reached, and the cluster’s pod addresses, where no other option says it',
    OWN,
  ),
  'routes-flannel-subnet-file': fieldFlag(
    'nodeplane.routes.flannel.subnetFile',
    'File to write for CNI plugins of flannel: /run/flannel/subnet.env; if empty, none',
    OWN,
  ),
  'pod-cidrs-from': fieldFlag(
    'nodeplane.pools.podCIDRsFrom',
    'Where the ranges of this node’s pods come from: node (podCIDRs of the Node object) or pool (blocks of --pool-cidrs, which the nodes share among themselves)',
    OWN,
  ),
  'pool-cidrs': fieldFlag(
    'nodeplane.pools.cidrs',
    'Pools of pod addresses, as CIDRs: the same on all nodes. Blocks are taken out of the first one of each family that has any left',
    OWN,
  ),
  'pool-block-size': fieldFlag(
    'nodeplane.pools.blockSize',
    'Prefix length of the blocks of IPv4 pools: 26 makes 64 addresses',
    OWN,
  ),
  'pool-block-size-ipv6': fieldFlag('nodeplane.pools.blockSizeIPv6', 'Prefix length of the blocks of IPv6 pools', OWN),
  'pool-reclaim-after': fieldFlag(
    'nodeplane.pools.reclaimAfter',
    'Time after which the blocks of a node that is gone are taken back: the same on all nodes. A node that cannot reach the API server for two thirds of it gives its pods no more addresses',
    OWN,
  ),
  'service-traffic-metrics': fieldFlag(
    'nodeplane.serviceTrafficMetrics',
    'Show traffic metrics of each Service while there are no more Services than this (mode ipvs); 0: none',
    OWN,
  ),
  'external-ip-cidrs': fieldFlag(
    'nodeplane.externalIPCIDRs',
    'Where external IPs of Services may be: CIDRs; those elsewhere are refused. If empty, everywhere. Never within the ranges of ClusterIPs, nor at an address of a node or of the API server',
    OWN,
  ),
  'localhost-nodeports': fieldFlag(
    'nodeplane.localhostNodePorts',
    'Let processes of the node reach NodePorts at 127.0.0.1 and ::1, in every mode and whatever --nodeport-addresses says. Without it as kube-proxy: see --iptables-localhost-nodeports',
    OWN,
  ),
  'log-level': fieldFlag(
    'nodeplane.logLevel',
    'debug, info, warn or error; if empty, info, or debug from -v 4 on',
    OWN,
  ),
} as const;

export type FlagName = keyof typeof FLAGS;
export type FlagValue<N extends FlagName> = (typeof FLAGS)[N] extends FlagSpec<infer T> ? T : never;

export const FLAG_NAMES = Object.keys(FLAGS) as readonly FlagName[];

/** The declaration of a flag, for code that treats all flags alike. */
export function flagNamed(name: FlagName): FlagSpec<unknown> {
  return FLAGS[name];
}
