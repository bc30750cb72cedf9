import { cidrContains, type IpAddress, type IpFamily, type IpProtocol, parseCidr } from '../../core/index.ts';
import type { ProxyMode, TrafficPolicy, Verdict } from '../../proxy/index.ts';
import type { SeenByAgent } from './seen.ts';

export const KNOWLEDGE_SCHEMA = 'explain-knowledge/v1';

// What the agent knows and the kernel does not: objects, and what they were made into. Plain JSON; addresses are text.

/** How the agent stands in one family. */
export interface KnownFamily {
  readonly family: IpFamily;
  readonly masqueradeMark: number;
  readonly nodePortAddresses: 'all' | readonly string[];
  /** Whose packets count as those of pods (`--detect-local-mode`): they are not bound by external policy Local. */
  readonly podTraffic:
    | { readonly kind: 'none' }
    | { readonly kind: 'cidr'; readonly cidr: string }
    /** By the beginning of the name of the interface they come in by, or all of it. */
    | { readonly kind: 'interface'; readonly name: string; readonly isPrefix: boolean };
  /** Seconds since something was written; null: never. */
  readonly writtenSecondsAgo: number | null;
  /** Since when its syncs fail, and why; null: they do not. */
  readonly failing: { readonly seconds: number; readonly reason: string } | null;
  /** Differences that it found in the kernel and has not repaired. */
  readonly drift: readonly string[];
}

export interface EndpointAddress {
  readonly ip: string;
  readonly port: number;
}

export interface KnownEndpoint extends EndpointAddress {
  /** Null: the slice does not say. */
  readonly node: string | null;
  readonly here: boolean;
  readonly ready: boolean;
  readonly terminating: boolean;
  /** EndpointReason of each policy; `policy-not-used` where no destination follows it. */
  readonly cluster: string;
  readonly local: string;
  readonly usedByCluster: boolean;
  readonly usedByLocal: boolean;
}

/** A Service port as planned in one family. */
export interface KnownPort {
  readonly family: IpFamily;
  readonly key: string;
  /** `shop/web:http` */
  readonly name: string;
  readonly protocol: IpProtocol;
  readonly clusterIp: string;
  readonly port: number;
  readonly nodePort: number;
  readonly externalIps: readonly string[];
  readonly loadBalancerVips: readonly string[];
  readonly sourceRanges: readonly string[];
  readonly affinitySeconds: number;
  readonly internalPolicy: TrafficPolicy;
  readonly externalPolicy: TrafficPolicy;
  readonly internalVerdict: Verdict;
  readonly externalVerdict: Verdict;
  /** The kernel refuses it. */
  readonly leftOut: string | null;
  /** At most 1,000: first those that this node uses by policy Local, then others in use, those of this node before all others. */
  readonly endpoints: readonly KnownEndpoint[];
  readonly endpointsTotal: number;
  /** All others in use, by policy. */
  readonly further: { readonly cluster: readonly EndpointAddress[]; readonly local: readonly EndpointAddress[] };
}

export interface KnownService {
  readonly name: string;
  readonly ipFamilies: readonly IpFamily[];
  /** `http 80/tcp`, all of them. */
  readonly portList: readonly string[];
  readonly ports: readonly KnownPort[];
  /** What of it or of its slices cannot be used. */
  readonly problems: readonly string[];
  /** Endpoints of its slices in all families, whatever their port. */
  readonly slices: number;
  readonly sliceEndpoints: number;
  /** What kinds of addresses these have: IPv4, IPv6, FQDN. */
  readonly sliceFamilies: readonly string[];
  readonly changedSecondsAgo: number | null;
  /** Something new of it is on its way into the kernel. */
  readonly unwritten: boolean;
  /** Hints are there and cannot be followed: why; null otherwise. */
  readonly hintsIgnored: string | null;
}

/** By which of its addresses a Service is meant. */
export type DestinationKind = 'cluster-ip' | 'external-ip' | 'load-balancer-ip' | 'node-port';

/** What the destination of a question is. */
export type KnownDestination =
  | {
      readonly kind: 'service';
      readonly service: KnownService;
      readonly via: DestinationKind;
      /** Null: that of the port in the family that is asked. */
      readonly address: string | null;
      /** Null: none was named. */
      readonly port: string | null;
    }
  | { readonly kind: 'no-service'; readonly name: string; readonly near: readonly string[] }
  | { readonly kind: 'not-served'; readonly name: string; readonly why: string }
  /** No pod of this name is known. */
  | { readonly kind: 'pod-name'; readonly name: string; readonly near: readonly string[] }
  | { readonly kind: 'no-node-port'; readonly port: number }
  | {
      readonly kind: 'address';
      /** `namespace/name` of the pod that was asked for by its name; null: an address was. */
      readonly pod: string | null;
      readonly address: string;
      readonly port: number | null;
      /** Services it is an endpoint of. */
      readonly endpointOf: readonly string[];
      /** The node it is an address of, or its pod. */
      readonly node: string | null;
      /** The Service whose NodePort has this number. */
      readonly nodePortOf: string | null;
      /** The Service whose load balancer has it, and takes connections itself (ipMode Proxy). */
      readonly proxiedOf: string | null;
    };

export interface KnownNode {
  readonly name: string;
  readonly addresses: readonly string[];
  /** Ranges of its pods. */
  readonly podCidrs: readonly string[];
}

/** Whether an address is in the ranges of a node's pods. */
export function hasPod({ podCidrs }: KnownNode, ip: IpAddress): boolean {
  return podCidrs.some((range) => cidrContains(parseCidr(range), ip));
}

/** A pod that was asked for by its name, as EndpointSlices tell it. */
export interface KnownPod {
  /** `namespace/name` */
  readonly name: string;
  /** Empty: it is in no slice that is known here. */
  readonly addresses: readonly string[];
  /** Null: its slices do not say. */
  readonly node: string | null;
  /** Names like this one, where there is none. */
  readonly near: readonly string[];
}

export interface Knowledge {
  readonly schema: typeof KNOWLEDGE_SCHEMA;
  readonly node: {
    readonly name: string;
    readonly zone: string;
    readonly addresses: readonly string[];
    readonly podCidrs: readonly string[];
  };
  readonly mode: ProxyMode;
  /** Whether an agent told it, which writes the kernel; otherwise manifests alone. */
  readonly live: boolean;
  /** Whether routes to other nodes are the agent's work. */
  readonly routes: boolean;
  /** Command lines that ask this agent, to be pasted into a shell; `explain` wants a question. */
  readonly commands: Readonly<Record<'status' | 'routes' | 'explain' | 'diff' | 'ipamCheck', string>>;
  /** Empty until the way into the kernel is known. */
  readonly families: readonly KnownFamily[];
  /** What connection tracking had counted a minute or two ago, by the kernel's names; null: nobody looked. */
  readonly trackingBefore: { readonly secondsAgo: number; readonly counters: Readonly<Record<string, number>> } | null;
  /** Null: no agent told it. */
  readonly seen: SeenByAgent | null;
  /** Other nodes and where they are; at most 1,000, without order. */
  readonly others: readonly KnownNode[];
  /** The pod that the question names as its source; null: it names none. */
  readonly source: KnownPod | null;
  readonly destination: KnownDestination;
}

/** What the agent tells of a family; undefined: it does not serve it, or nothing yet. */
export function knownFamily({ families }: Knowledge, family: IpFamily): KnownFamily | undefined {
  return families.find((one) => one.family === family);
}
