import type { Protocol, SliceEndpoint } from '../../src/kube/index.ts';

// A scenario is data: one Service, its endpoints, and what happens to whoever connects. world.ts builds all scenarios of
// a run into one lab; the test file checks them in every mode and family.

/** The hosts of the world: pods on the node under test and on another, processes on the node, machines outside. */
export type HostName = 'web-1' | 'web-2' | 'client' | 'far' | 'node-1' | 'outside' | 'stranger';

/** Which of the Service's addresses is tried; a NodePort is tried at the address of node-1. */
export type Destination = 'clusterIP' | 'nodePort' | 'nodePortOfLoopback' | 'externalIP' | 'loadBalancerVIP';

/** What becomes of a connection. */
export type Expected =
  /** Exactly these answer, every one of them when tried often, and see this source address. */
  | { readonly by: readonly HostName[]; readonly source: 'own' | 'masqueraded' }
  /** All connections of one client are answered by one and the same of these. */
  | { readonly byOneOf: readonly HostName[] }
  | 'refused'
  /** Dropped on the sender's own node, which tells it (EPERM). */
  | 'not permitted'
  | 'timeout';

export interface Check {
  readonly from: HostName;
  readonly to: Destination;
  readonly expected: Expected;
  /** So many connections, one after the other, and none waits for another try. Only with `refused`. @default 1 */
  readonly inARow?: number;
}

export interface Scenario {
  readonly name: string;
  /** The Service has its port number in each of them, and each is checked; SCTP where the kernel has it. @default TCP */
  readonly protocols?: readonly Protocol[];
  /** Written into the Service's spec; addresses, ports and families are the world's business. */
  readonly spec: {
    readonly type?: 'NodePort' | 'LoadBalancer';
    readonly externalIP?: true;
    readonly externalTrafficPolicy?: 'Cluster' | 'Local';
    readonly internalTrafficPolicy?: 'Cluster' | 'Local';
    readonly sessionAffinity?: 'ClientIP';
    /** Who may use the load-balancer VIP, by family. */
    readonly loadBalancerSourceRanges?: { readonly IPv4: string; readonly IPv6: string };
  };
  readonly endpoints: readonly {
    readonly pod: 'web-1' | 'web-2' | 'far';
    readonly conditions?: NonNullable<SliceEndpoint['conditions']>;
    readonly hints?: NonNullable<SliceEndpoint['hints']>;
  }[];
  readonly checks: readonly Check[];
}
