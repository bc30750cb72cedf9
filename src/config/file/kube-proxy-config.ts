import type { Cidr, IpAddress, IpFamily } from '../../core/index.ts';
import type { BindAddress } from '../values/bind-address.ts';
import type { FeatureGates } from '../values/feature-gates.ts';
import type { Configuration } from './schema.ts';

export const MODES = ['iptables', 'ipvs', 'nftables'] as const;
export const IPTABLES_VARIANTS = ['auto', 'legacy', 'nft'] as const;
export const ROUTE_MODES = ['none', 'host-gw', 'vxlan', 'wireguard', 'auto'] as const;
export const ROUTE_TUNNELS = ['vxlan', 'wireguard'] as const;
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
/** What macvlans of one link make of each other's frames; passthru would take the link from the node. */
export const MACVLAN_MODES = ['private', 'bridge', 'vepa'] as const;
export const LOG_FORMATS = ['text', 'json'] as const;

/** How the traffic of this node's pods is told from other traffic. */
export type DetectLocal =
  /** By source address; no CIDRs: nothing counts as local. */
  | { readonly mode: 'ClusterCIDR'; readonly cidrs: readonly Cidr[] }
  /** By the Node object's podCIDRs. */
  | { readonly mode: 'NodeCIDR' }
  | { readonly mode: 'BridgeInterface'; readonly bridgeInterface: string }
  | { readonly mode: 'InterfaceNamePrefix'; readonly interfaceNamePrefix: string };

/** How the agent serves the container runtime. Paths are absolute. */
export interface CniSettings {
  readonly binDir: string;
  readonly confDir: string;
  /** File with the configuration list to install; empty: our own. */
  readonly conflist: string;
  /** Empty: those of the Node object. */
  readonly podCidrs: readonly Cidr[];
  readonly dataDir: string;
  readonly socket: string;
  readonly spoolDir: string;
  /** Undefined: no pod gets a second interface. */
  readonly macvlan: MacvlanSettings | undefined;
}

/** The second interface of pods that ask for one by annotation. */
export interface MacvlanSettings {
  /** Whose pods may; `*` stands for all. Not empty. */
  readonly namespaces: readonly string[];
  /** Names of the node's links, and `default` for that of the default route; a pod that names none gets the first. */
  readonly masters: readonly string[];
  readonly mode: (typeof MACVLAN_MODES)[number];
  /** The configuration of a CNI plugin that gives addresses, which is its `type`; undefined: pods do it themselves. */
  readonly ipam: Readonly<Record<string, unknown>> | undefined;
  /** What pods reach through the pod network besides the node and the Service CIDRs that the API server tells. */
  readonly routes: readonly Cidr[];
}

/** Which packets carry the node's address when they leave the cluster. */
export interface MasqueradeConfig {
  /** The families in which those of this node's pods do. */
  readonly ownPods: readonly IpFamily[];
  /** Whose packets do besides. */
  readonly sources: readonly Cidr[];
  /** Destinations to which packets keep their source, besides the pods of all nodes. */
  readonly exempt: readonly Cidr[];
  readonly randomFully: boolean;
}

/** How the pods of other nodes are reached. */
export interface RoutesConfig {
  readonly mode: Exclude<(typeof ROUTE_MODES)[number], 'none'>;
  /** What mode `auto` uses where a router is between. */
  readonly tunnel: (typeof ROUTE_TUNNELS)[number];
  /** VXLAN network identifier. */
  readonly vni: number;
  /** UDP port of VXLAN. */
  readonly port: number;
  /** Undefined: what the network between the nodes carries. */
  readonly mtu: number | undefined;
  /** Undefined: the one that has the node's address. */
  readonly interfaceName: string | undefined;
  readonly wireguard: WireguardSettings;
  /** Undefined: packets of pods leave as they are. */
  readonly masquerade: MasqueradeConfig | undefined;
  /** Whether condition NetworkUnavailable of the own Node is cleared, where the agent has the pods' network as well. */
  readonly clearNetworkUnavailable: boolean;
  readonly flannel: {
    /** Whether the own Node has the annotations by which flannel's nodes reach its pods. */
    readonly annotations: boolean;
    /** Where flannel's CNI plugins look for the node's network; undefined: nothing is written there. */
    readonly subnetFile: string | undefined;
    /** The addresses of all pods; not empty if there is a subnetFile. */
    readonly networks: readonly Cidr[];
  };
}

/** How this node takes part where pods are reached by WireGuard. */
export interface WireguardSettings {
  /** UDP. */
  readonly port: number;
  /** Seconds between packets to each peer that keep the path to it open; 0 for none. */
  readonly keepaliveSeconds: number;
  /** File with the private key. Absolute. */
  readonly keyFile: string;
}

export const POD_CIDR_SOURCES = ['node', 'pool'] as const;

/** The pools that nodes share in blocks. */
export interface PoolsConfig {
  /** At least one. */
  readonly cidrs: readonly Cidr[];
  /** Prefix lengths of blocks. */
  readonly blockSizes: Readonly<Record<IpFamily, number>>;
  readonly reclaimMs: number;
}

/** What the proxy runs with: parsed, complete, checked. Durations in milliseconds; a conntrack or IPVS timeout of 0 is left alone. */
export interface KubeProxyConfig {
  /** The Node object of this machine. Empty only where no Node is needed: with `--cleanup` and `--write-config-to`. */
  readonly nodeName: string;
  readonly apiServer: {
    /** Beats the address in the kubeconfig; empty: not given. */
    readonly master: string;
    /** Empty together with `master`: the pod's own credentials. */
    readonly kubeconfig: string;
    /** Requests a second in the long run; negative: no limit. */
    readonly qps: number;
    /** Requests at once. */
    readonly burst: number;
    /** Whether objects are asked for in protobuf, rather than in JSON alone. */
    readonly protobuf: boolean;
  };
  /** The node IP if it is not the Node object's; its family is the primary one then. */
  readonly nodeIp: IpAddress | undefined;
  /** Undefined: no health server. */
  readonly healthzBindAddress: BindAddress | undefined;
  readonly metricsBindAddress: BindAddress;
  /** Where /status is shown to everybody; undefined: nowhere. */
  readonly statusBindAddress: BindAddress | undefined;
  readonly bindAddressHardFail: boolean;
  readonly profiling: boolean;
  readonly featureGates: FeatureGates;
  readonly mode: (typeof MODES)[number];
  readonly masqueradeBit: number;
  readonly masqueradeAll: boolean;
  readonly syncPeriodMs: number;
  readonly minSyncPeriodMs: number;
  /** `as-kube-proxy`: at 127.0.0.0/8, if `nodePortAddresses` allows it; `always`: also at ::1, and in any case. */
  readonly localhostNodePorts: 'never' | 'as-kube-proxy' | 'always';
  readonly ipvs: {
    readonly scheduler: string;
    readonly excludeCidrs: readonly Cidr[];
    readonly strictArp: boolean;
    readonly tcpTimeoutMs: number;
    readonly tcpFinTimeoutMs: number;
    readonly udpTimeoutMs: number;
  };
  readonly detectLocal: DetectLocal;
  readonly nodePortAddresses: 'all' | 'primary' | readonly Cidr[];
  readonly oomScoreAdj: number;
  readonly conntrack: {
    readonly maxPerCore: number;
    readonly min: number;
    readonly tcpEstablishedTimeoutMs: number;
    readonly tcpCloseWaitTimeoutMs: number;
    readonly tcpBeLiberal: boolean;
    readonly udpTimeoutMs: number;
    readonly udpStreamTimeoutMs: number;
  };
  readonly logging: {
    readonly format: (typeof LOG_FORMATS)[number];
    readonly verbosity: number;
    readonly level: (typeof LOG_LEVELS)[number];
  };
  /** Directory of manifests in place of an API server; empty: none. */
  readonly manifests: string;
  readonly iptablesVariant: (typeof IPTABLES_VARIANTS)[number];
  /** The value of the label service.kubernetes.io/service-proxy-name to serve; empty: Services without that label. */
  readonly serviceProxyName: string;
  /** Most Services that may have traffic metrics of their own; 0: none have. */
  readonly serviceTrafficMetrics: number;
  /** Where external IPs of Services may be; empty: everywhere. */
  readonly externalIpCidrs: readonly Cidr[];
  /** The directory of sysctls; absolute. */
  readonly procSysRoot: string;
  /** How long the end after a change of the configuration file may be put off; 0: not at all. */
  readonly configChangeSpreadMs: number;
  /** Where the lock lies that keeps two agents off one node; empty: there is none. */
  readonly agentLockDir: string;
  /** Whether the own Node is to say what this node ran before. */
  readonly migrationAnnotation: boolean;
  /** Undefined: the agent has nothing to do with the pods' network. */
  readonly cni: CniSettings | undefined;
  /** Undefined: the ranges of a node's pods are those that its Node object names. */
  readonly pools: PoolsConfig | undefined;
  /** Undefined: the agent has nothing to do with the routes to other nodes. */
  readonly routes: RoutesConfig | undefined;
  /** The version to report; differs from kube-proxy's by a suffix at most. */
  readonly reportedVersion: string;
  /** The same in the shape of the file: for /configz and `--write-config-to`. */
  readonly effective: Configuration;
}
