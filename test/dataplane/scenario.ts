import type { Protocol, SliceEndpoint } from '../../src/kube/index.ts';
import { HAIRPIN_SCENARIOS } from './hairpin-scenarios.ts';
import { REFUSAL_SCENARIOS } from './refusal-scenarios.ts';

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
  /** @default both */
  readonly family?: 'IPv4' | 'IPv6';
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

const READY_EVERYWHERE = [{ pod: 'web-1' }, { pod: 'web-2' }, { pod: 'far' }] as const;
const EVERYBODY: readonly HostName[] = ['web-1', 'web-2', 'far'];

/** The truth tables of kube-proxy's behaviour: without endpoints, by source, by policy, by source range. */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'ClusterIP is balanced over all endpoints and keeps the address of pods only',
    spec: {},
    endpoints: READY_EVERYWHERE,
    checks: [
      { from: 'client', to: 'clusterIP', expected: { by: EVERYBODY, source: 'own' } },
      { from: 'node-1', to: 'clusterIP', expected: { by: EVERYBODY, source: 'masqueraded' } },
      { from: 'outside', to: 'clusterIP', expected: { by: EVERYBODY, source: 'masqueraded' } },
    ],
  },
  {
    name: 'one port number of three protocols is balanced in each of them',
    protocols: ['TCP', 'UDP', 'SCTP'],
    spec: { type: 'NodePort' },
    endpoints: READY_EVERYWHERE,
    checks: [
      { from: 'client', to: 'clusterIP', expected: { by: EVERYBODY, source: 'own' } },
      { from: 'outside', to: 'nodePort', expected: { by: EVERYBODY, source: 'masqueraded' } },
    ],
  },
  {
    name: 'a pod reaches itself through its Service (hairpin)',
    spec: { type: 'NodePort' },
    endpoints: [{ pod: 'web-1' }],
    checks: [
      { from: 'web-1', to: 'clusterIP', expected: { by: ['web-1'], source: 'masqueraded' } },
      { from: 'web-1', to: 'nodePort', expected: { by: ['web-1'], source: 'masqueraded' } },
      { from: 'web-2', to: 'clusterIP', expected: { by: ['web-1'], source: 'own' } },
    ],
  },
  {
    name: 'without endpoints everything is refused at once',
    spec: { type: 'LoadBalancer', externalIP: true },
    endpoints: [{ pod: 'web-1', conditions: { ready: false } }],
    checks: [
      { from: 'client', to: 'clusterIP', expected: 'refused' },
      { from: 'node-1', to: 'clusterIP', expected: 'refused' },
      { from: 'outside', to: 'nodePort', expected: 'refused' },
      { from: 'outside', to: 'externalIP', expected: 'refused' },
      { from: 'outside', to: 'loadBalancerVIP', expected: 'refused' },
    ],
  },
  {
    name: 'without endpoints UDP and SCTP are refused too',
    protocols: ['UDP', 'SCTP'],
    spec: { type: 'NodePort' },
    endpoints: [],
    checks: [
      { from: 'client', to: 'clusterIP', expected: 'refused' },
      { from: 'outside', to: 'nodePort', expected: 'refused' },
    ],
  },
  {
    name: 'NodePort, policy Cluster: every endpoint, everybody masqueraded',
    spec: { type: 'NodePort' },
    endpoints: READY_EVERYWHERE,
    checks: [
      { from: 'outside', to: 'nodePort', expected: { by: EVERYBODY, source: 'masqueraded' } },
      { from: 'client', to: 'nodePort', expected: { by: EVERYBODY, source: 'masqueraded' } },
      { from: 'node-1', to: 'nodePort', expected: { by: EVERYBODY, source: 'masqueraded' } },
      // The kernel routes 127.0.0.0/8 elsewhere when told to; ::1 it never does.
      { from: 'node-1', to: 'nodePortOfLoopback', expected: { by: EVERYBODY, source: 'masqueraded' }, family: 'IPv4' },
      { from: 'node-1', to: 'nodePortOfLoopback', expected: 'refused', family: 'IPv6' },
    ],
  },
  {
    name: 'NodePort, policy Local: outside clients keep their address and stay local, pods and the node do not',
    protocols: ['TCP', 'SCTP'],
    spec: { type: 'NodePort', externalTrafficPolicy: 'Local' },
    endpoints: READY_EVERYWHERE,
    checks: [
      { from: 'outside', to: 'nodePort', expected: { by: ['web-1', 'web-2'], source: 'own' } },
      { from: 'client', to: 'nodePort', expected: { by: EVERYBODY, source: 'own' } },
      { from: 'node-1', to: 'nodePort', expected: { by: EVERYBODY, source: 'masqueraded' } },
      { from: 'client', to: 'clusterIP', expected: { by: EVERYBODY, source: 'own' } },
    ],
  },
  {
    name: 'NodePort, policy Local, no endpoint here: outside clients are dropped, pods and the node go elsewhere',
    spec: { type: 'NodePort', externalTrafficPolicy: 'Local' },
    endpoints: [{ pod: 'far' }],
    checks: [
      { from: 'outside', to: 'nodePort', expected: 'timeout' },
      { from: 'client', to: 'nodePort', expected: { by: ['far'], source: 'own' } },
      { from: 'node-1', to: 'nodePort', expected: { by: ['far'], source: 'masqueraded' } },
    ],
  },
  {
    name: 'ClusterIP, policy Local: only endpoints here',
    protocols: ['TCP', 'SCTP'],
    spec: { internalTrafficPolicy: 'Local' },
    endpoints: READY_EVERYWHERE,
    checks: [
      { from: 'client', to: 'clusterIP', expected: { by: ['web-1', 'web-2'], source: 'own' } },
      { from: 'node-1', to: 'clusterIP', expected: { by: ['web-1', 'web-2'], source: 'masqueraded' } },
    ],
  },
  {
    name: 'ClusterIP, policy Local, no endpoint here: dropped; the NodePort of the same Service is not concerned',
    protocols: ['TCP', 'SCTP'],
    spec: { type: 'NodePort', internalTrafficPolicy: 'Local' },
    endpoints: [{ pod: 'far' }],
    checks: [
      { from: 'client', to: 'clusterIP', expected: 'timeout' },
      { from: 'outside', to: 'nodePort', expected: { by: ['far'], source: 'masqueraded' } },
    ],
  },
  {
    name: 'external IP, policy Cluster',
    spec: { externalIP: true },
    endpoints: READY_EVERYWHERE,
    checks: [
      { from: 'outside', to: 'externalIP', expected: { by: EVERYBODY, source: 'masqueraded' } },
      { from: 'client', to: 'externalIP', expected: { by: EVERYBODY, source: 'masqueraded' } },
    ],
  },
  {
    name: 'external IP, policy Local',
    spec: { externalIP: true, externalTrafficPolicy: 'Local' },
    endpoints: READY_EVERYWHERE,
    checks: [
      { from: 'outside', to: 'externalIP', expected: { by: ['web-1', 'web-2'], source: 'own' } },
      { from: 'client', to: 'externalIP', expected: { by: EVERYBODY, source: 'own' } },
    ],
  },
  {
    name: 'load-balancer source ranges: who is outside is dropped at the VIP, not at the NodePort',
    spec: {
      type: 'LoadBalancer',
      loadBalancerSourceRanges: { IPv4: '192.168.50.101/32', IPv6: 'fd00:50::101/128' },
    },
    endpoints: READY_EVERYWHERE,
    checks: [
      { from: 'outside', to: 'loadBalancerVIP', expected: { by: EVERYBODY, source: 'masqueraded' } },
      { from: 'stranger', to: 'loadBalancerVIP', expected: 'timeout' },
      { from: 'client', to: 'loadBalancerVIP', expected: 'timeout' },
      { from: 'stranger', to: 'nodePort', expected: { by: EVERYBODY, source: 'masqueraded' } },
    ],
  },
  {
    name: 'load-balancer source ranges that contain the node: its processes may use the VIP, nobody else',
    spec: { type: 'LoadBalancer', loadBalancerSourceRanges: { IPv4: '192.168.50.1/32', IPv6: 'fd00:50::1/128' } },
    endpoints: READY_EVERYWHERE,
    checks: [
      { from: 'node-1', to: 'loadBalancerVIP', expected: { by: EVERYBODY, source: 'masqueraded' } },
      { from: 'outside', to: 'loadBalancerVIP', expected: 'timeout' },
      { from: 'client', to: 'loadBalancerVIP', expected: 'timeout' },
    ],
  },
  {
    name: 'load-balancer source ranges without endpoints: refused for everybody',
    spec: { type: 'LoadBalancer', loadBalancerSourceRanges: { IPv4: '192.168.50.101/32', IPv6: 'fd00:50::101/128' } },
    endpoints: [],
    checks: [
      { from: 'outside', to: 'loadBalancerVIP', expected: 'refused' },
      { from: 'stranger', to: 'loadBalancerVIP', expected: 'refused' },
    ],
  },
  {
    name: 'session affinity keeps each client with one endpoint',
    protocols: ['TCP', 'SCTP'],
    spec: { type: 'NodePort', sessionAffinity: 'ClientIP' },
    endpoints: READY_EVERYWHERE,
    checks: [
      { from: 'client', to: 'clusterIP', expected: { byOneOf: EVERYBODY } },
      { from: 'outside', to: 'nodePort', expected: { byOneOf: EVERYBODY } },
    ],
  },
  {
    name: 'an endpoint that is not ready gets nothing while another is',
    spec: {},
    endpoints: [{ pod: 'web-1' }, { pod: 'web-2', conditions: { ready: false, serving: true, terminating: true } }],
    checks: [{ from: 'client', to: 'clusterIP', expected: { by: ['web-1'], source: 'own' } }],
  },
  {
    name: 'terminating endpoints that still serve are used when nothing is ready',
    spec: {},
    endpoints: [
      { pod: 'web-1', conditions: { ready: false, serving: true, terminating: true } },
      { pod: 'far', conditions: { ready: false, serving: false, terminating: true } },
    ],
    checks: [{ from: 'client', to: 'clusterIP', expected: { by: ['web-1'], source: 'own' } }],
  },
  {
    name: 'topology hints keep traffic in the zone of the node',
    spec: {},
    endpoints: [
      { pod: 'web-1', hints: { forZones: [{ name: 'zone-b' }] } },
      { pod: 'web-2', hints: { forZones: [{ name: 'zone-a' }] } },
      { pod: 'far', hints: { forZones: [{ name: 'zone-a' }, { name: 'zone-b' }] } },
    ],
    checks: [{ from: 'client', to: 'clusterIP', expected: { by: ['web-2', 'far'], source: 'own' } }],
  },
  ...REFUSAL_SCENARIOS,
  ...HAIRPIN_SCENARIOS,
];
