import { HAIRPIN_SCENARIOS } from './hairpin-scenarios.ts';
import { REFUSAL_SCENARIOS } from './refusal-scenarios.ts';
import type { HostName, Scenario } from './scenario.ts';

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
      { from: 'node-1', to: 'nodePortOfLoopback', expected: { by: EVERYBODY, source: 'masqueraded' } },
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
      { from: 'node-1', to: 'nodePortOfLoopback', expected: 'refused' },
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
      { from: 'node-1', to: 'nodePortOfLoopback', expected: { by: EVERYBODY, source: 'masqueraded' } },
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
      { from: 'node-1', to: 'nodePortOfLoopback', expected: { by: ['far'], source: 'masqueraded' } },
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
    name: 'session affinity under policy Local keeps each client outside with one endpoint here',
    protocols: ['TCP', 'UDP'],
    spec: { type: 'NodePort', sessionAffinity: 'ClientIP', externalTrafficPolicy: 'Local' },
    endpoints: READY_EVERYWHERE,
    checks: [{ from: 'outside', to: 'nodePort', expected: { byOneOf: ['web-1', 'web-2'] } }],
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
