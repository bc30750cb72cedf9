import type { Cidr, IpAddress, IpFamily } from '../../core/index.ts';
import type { Protocol } from '../../kube/index.ts';
import type { Endpoint } from './endpoint.ts';

// The plan: what the dataplanes have to make true, in the proxy's own terms. Made by plan.ts, read by every dataplane.

/** What happens to the first packet of a connection to a destination (reference: kube-proxy's reject/drop table). */
export type Verdict =
  /** Balanced over the endpoints of the policy. */
  | 'forward'
  /** No endpoint anywhere: refused at once, TCP by a reset and other protocols by ICMP port unreachable. */
  | 'reject'
  /** Endpoints exist, but none on this node and the policy is Local: silently dropped. */
  | 'drop';

/** `internalTrafficPolicy` and `externalTrafficPolicy` of a Service: every endpoint, or those of this node alone. */
export type TrafficPolicy = 'Cluster' | 'Local';

/** One port of one Service in one family: the unit of programming. Immutable. */
export interface ServicePortPlan {
  /** Unique in the plan: `ns/name:portName/TCP`. */
  readonly key: string;
  /** The Service: `ns/name`. */
  readonly serviceName: string;
  /** As kube-proxy writes it in comments and hashes: `ns/name:portName`, or `ns/name` for an unnamed port. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly clusterIp: IpAddress;
  readonly port: number;
  /** 0: none. */
  readonly nodePort: number;
  readonly externalIps: readonly IpAddress[];
  readonly loadBalancerVips: readonly IpAddress[];
  /** Who may use the load-balancer VIPs; empty: everybody. */
  readonly sourceRanges: readonly Cidr[];
  /** ClientIP session affinity; 0: off. */
  readonly affinitySeconds: number;
  /** Only for type LoadBalancer with externalTrafficPolicy Local; 0: none. */
  readonly healthCheckNodePort: number;
  /** What the mode in use reads of the Service for itself (`ServiceHint`). @default nothing */
  readonly hint?: string;

  readonly internalPolicy: TrafficPolicy;
  readonly externalPolicy: TrafficPolicy;
  /** Endpoints used under policy Cluster, sorted by `key`. */
  readonly clusterEndpoints: readonly Endpoint[];
  /** Endpoints used under policy Local, sorted by `key`. */
  readonly localEndpoints: readonly Endpoint[];
  /**
   * UDP and SCTP: all endpoints that serve, terminating ones included, whatever policy and topology say: flows to them go
   * on undisturbed. @default those in use
   */
  readonly servingEndpoints?: readonly Endpoint[];
  /** Whether anything on any node could serve: decides reject against drop. */
  readonly hasAnyEndpoints: boolean;
  /** For the ClusterIP. */
  readonly internalVerdict: Verdict;
  /** For NodePort, external IPs and load-balancer VIPs, from outside this node. */
  readonly externalVerdict: Verdict;
}

/** How to tell that a packet comes from a pod of this cluster (node). */
export type LocalDetector =
  | { readonly kind: 'none' }
  | { readonly kind: 'cidr'; readonly cidr: Cidr }
  | { readonly kind: 'bridge'; readonly interfaceName: string }
  | { readonly kind: 'prefix'; readonly interfacePrefix: string };

/** What is the same for all Services of a node, in one family. */
export interface NodePlan {
  readonly localDetector: LocalDetector;
  /** The one bit of the firewall mark that asks for masquerading, as a number (default 0x4000). */
  readonly masqueradeMark: number;
  /** Masquerade everything that goes to a ClusterIP. */
  readonly masqueradeAll: boolean;
  /**
   * Addresses that answer on NodePorts; `all`: every local address except loopback. Loopback ones are in the list only with
   * `loopbackNodePorts`; a dataplane translates at `translatedNodePortAddresses`.
   */
  readonly nodePortAddresses: 'all' | readonly IpAddress[];
  /** NodePorts answer this node's own processes at loopback addresses too. @default false */
  readonly loopbackNodePorts?: boolean;
  /** The node's own address of this family, when known. */
  readonly nodeIp: IpAddress | undefined;
  /** What addresses this node's pods have (podCIDRs of the Node object), as far as known. @default not known */
  readonly podCidrs?: readonly Cidr[];
  /** What ClusterIPs are allocated from (ServiceCIDR objects): the rest of it leads nowhere. @default not known */
  readonly serviceCidrs?: readonly Cidr[];
}

/**
 * Everything a dataplane of one family has to make true. No destination (address, protocol and port, or NodePort) is in two
 * ports. `ports` is live: read it inside the call that got it.
 */
export interface Plan {
  readonly family: IpFamily;
  readonly node: NodePlan;
  readonly ports: ReadonlyMap<string, ServicePortPlan>;
}

/** What changed since the last successful commit. A port that changed is in `upserted` only. */
export interface PlanDelta {
  readonly upserted: readonly ServicePortPlan[];
  readonly removed: readonly ServicePortPlan[];
  /** What was planned before for ports in `upserted`: tells addresses a Service has no longer. @default none known */
  readonly replaced?: readonly ServicePortPlan[];
}
