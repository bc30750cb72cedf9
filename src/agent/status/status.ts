import type { IpFamily } from '../../core/index.ts';
import type { EndpointReason, TrafficPolicy, Verdict } from '../../proxy/index.ts';

// How a node stands, as one object: the page, `nodeplane status`, `nodeplane services` and the JSON are written from it. It has no
// labels, annotations or Secrets: whoever reaches the page may read it. Times are RFC 3339, durations seconds, sizes bytes.

/** What the JSON is of. Fields may be added to it; the number changes when one goes or means something else. */
export const STATUS_SCHEMA = 'nodeplane/status/v1';

export interface Status {
  readonly schema: typeof STATUS_SCHEMA;
  readonly node: string;
  readonly version: string;
  /** --proxy-mode in force. */
  readonly mode: string;
  readonly takenAt: string;
  /** The eight questions, in the order in which people ask them. */
  readonly questions: readonly Question[];
  /** What is behind each ✗, the worst first; more than a limit are counted alone. */
  readonly problems: readonly Problem[];
  readonly problemsTotal: number;
  /** The last syncs of each family that wrote something or failed, the oldest first. */
  readonly syncs: readonly FamilySyncs[];
  readonly services: ServiceList;
  /** Null: the agent has nothing to do with routes to other nodes. */
  readonly peers: PeerList | null;
  /** Ranges of this node's pods; null: the agent has nothing to do with them. */
  readonly addresses: readonly AddressRange[] | null;
  /** In what the kernel was found not to be as meant, until the repair. */
  readonly drift: readonly string[];
  /** What happened lately, the newest first. */
  readonly changes: readonly Change[];
  /** What others changed in nf_tables lately, the newest first. Changes by legacy iptables nobody is told of. */
  readonly ruleChanges: readonly ForeignChange[];
}

export const QUESTIONS = ['agent', 'write', 'api', 'services', 'rules', 'conntrack', 'nodes', 'changes'] as const;
export type QuestionId = (typeof QUESTIONS)[number];

/** The answer to one of the eight questions. */
export interface Question {
  readonly id: QuestionId;
  /** In a few words: `Last write`. */
  readonly title: string;
  /** `none`: there is nothing to ask on this node, or it cannot be known. */
  readonly verdict: 'ok' | 'problem' | 'none';
  /** The one number, null when there is none; `figure` says of what. */
  readonly value: number | null;
  /** The number as people read it: `3 of 14`, `2.1 ms`. */
  readonly figure: string;
  /** The rest of the line. */
  readonly detail: string;
  /** How old the answer is, or since when it is so; null: not known. */
  readonly ageSeconds: number | null;
}

export interface Problem {
  readonly question: QuestionId;
  readonly message: string;
  /** A command line that tells more, to be pasted on the node. */
  readonly command: string;
}

export interface FamilySyncs {
  readonly family: IpFamily;
  readonly syncs: readonly SyncPoint[];
}

export interface SyncPoint {
  readonly at: string;
  readonly seconds: number;
  /** All Services were written, not only what changed. */
  readonly full: boolean;
  readonly failed: boolean;
}

export interface ServiceList {
  /** Of the node, those that something is programmed for. */
  readonly total: number;
  /** What was searched for; empty: nothing. */
  readonly query: string;
  /** How many fit the search. */
  readonly matched: number;
  /** From 1. */
  readonly page: number;
  readonly pages: number;
  /** Those of this page: first those somebody should look at, then by name. */
  readonly services: readonly ServiceReport[];
}

export interface ServiceReport {
  /** `namespace/name` */
  readonly name: string;
  /** When the Service or its EndpointSlices last changed; null: not since the agent's start. */
  readonly lastChange: string | null;
  /** What of it is not served, in words. */
  readonly problems: readonly string[];
  readonly ports: readonly PortReport[];
}

/** A port in one family. */
export interface PortReport {
  readonly family: IpFamily;
  /** Empty: it has none. */
  readonly portName: string;
  readonly protocol: string;
  readonly clusterIp: string;
  readonly port: number;
  /** 0: none. */
  readonly nodePort: number;
  readonly externalIps: readonly string[];
  readonly loadBalancerVips: readonly string[];
  /** Who may use the load-balancer VIPs; empty: everybody. */
  readonly sourceRanges: readonly string[];
  readonly internalPolicy: TrafficPolicy;
  readonly externalPolicy: TrafficPolicy;
  /** What happens to connections to the ClusterIP, */
  readonly internalVerdict: Verdict;
  /** and from outside to the other addresses; null: it has no others. */
  readonly externalVerdict: Verdict | null;
  /** Session affinity by client address; 0: off. */
  readonly affinitySeconds: number;
  /** Why the kernel refuses it; null: it does not. */
  readonly leftOut: string | null;
  readonly endpointsTotal: number;
  /** How many get connections from this node. */
  readonly endpointsUsed: number;
  /** As many as a limit allows, those in use first. */
  readonly endpoints: readonly EndpointReport[];
}

export interface EndpointReport {
  readonly address: string;
  readonly port: number;
  /** It runs on this node. */
  readonly here: boolean;
  readonly used: boolean;
  /** Why it is used, or not, under policy Cluster and under policy Local; null: nothing of the port follows that policy. */
  readonly cluster: EndpointReason | null;
  readonly local: EndpointReason | null;
}

export interface PeerList {
  /** --routes */
  readonly mode: string;
  /** How many Nodes have pods, over the families. */
  readonly total: number;
  /** As many as a limit allows, first those that are not, or not all, reached. */
  readonly peers: readonly PeerReport[];
}

export interface PeerReport {
  readonly node: string;
  readonly family: IpFamily;
  /** `direct via 192.168.1.2`; empty: there is none. */
  readonly way: string;
  readonly podCidrs: readonly string[];
  /** Why not all of its pods are reached, or what the kernel says against it; null: nothing is known against it. */
  readonly problem: string | null;
  /** Since when it stands so. */
  readonly lastChange: string;
}

export interface AddressRange {
  readonly cidr: string;
  /** `open`: new pods get addresses of it; `closed`: they do not any more. */
  readonly state: 'open' | 'closed';
  readonly used: number;
  readonly free: number;
}

/** A change of rules by somebody else. */
export interface ForeignChange extends Change {
  /** As the kernel knows it, at most 15 bytes. */
  readonly program: string;
  /** Outside all containers; 0: the kernel itself. */
  readonly pid: number;
}

export interface Change {
  readonly at: string;
  readonly what: string;
  /** How often in a row, the last time at `at`. */
  readonly count: number;
}

/** How much of everything is told: a page is for people. */
export const STATUS_LIMITS = {
  /** A page of Services, in a list and of the one that was asked for. */
  servicesOnPage: 100,
  endpointsInList: 10,
  endpointsOfOne: 1000,
  textsOfService: 10,
  problems: 50,
  syncs: 60,
  changes: 40,
  ruleChanges: 32,
  peers: 100,
  drifts: 20,
  /** Services whose last change is remembered: those beyond changed longest ago. */
  lastChanges: 50_000,
  /** Letters of a search: twenty addresses of IPv6 with commas between. */
  query: 1024,
  /** Nodes whose neighbours are looked up in the kernel for a page; more take longer than a page may. */
  peersLookedAt: 1000,
} as const;
