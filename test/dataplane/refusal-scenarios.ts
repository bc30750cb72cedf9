import type { Scenario } from './scenario.ts';

/** What those hear who are not served. */
export const REFUSAL_SCENARIOS: readonly Scenario[] = [
  {
    name: 'without endpoints every one of many TCP connections is refused at once',
    spec: { type: 'LoadBalancer', externalIP: true },
    endpoints: [],
    checks: [
      { from: 'client', to: 'clusterIP', expected: 'refused', inARow: 200 },
      { from: 'node-1', to: 'clusterIP', expected: 'refused', inARow: 200 },
      { from: 'outside', to: 'nodePort', expected: 'refused', inARow: 200 },
      { from: 'outside', to: 'externalIP', expected: 'refused', inARow: 200 },
      { from: 'outside', to: 'loadBalancerVIP', expected: 'refused', inARow: 200 },
      { from: 'node-1', to: 'nodePort', expected: 'refused', inARow: 200 },
      { from: 'node-1', to: 'nodePortOfLoopback', expected: 'refused', inARow: 200 },
    ],
  },
  {
    name: 'UDP to a ClusterIP that is dropped: a pod hears nothing, a process of the node is told at once',
    protocols: ['UDP'],
    spec: { internalTrafficPolicy: 'Local' },
    endpoints: [{ pod: 'far' }],
    checks: [
      { from: 'client', to: 'clusterIP', expected: 'timeout' },
      { from: 'node-1', to: 'clusterIP', expected: 'not permitted' },
    ],
  },
  {
    name: 'UDP from outside the source ranges: a pod hears nothing, a process of the node is told at once',
    protocols: ['UDP'],
    spec: {
      type: 'LoadBalancer',
      loadBalancerSourceRanges: { IPv4: '192.168.50.101/32', IPv6: 'fd00:50::101/128' },
    },
    endpoints: [{ pod: 'far' }],
    checks: [
      { from: 'client', to: 'loadBalancerVIP', expected: 'timeout' },
      { from: 'stranger', to: 'loadBalancerVIP', expected: 'timeout' },
      { from: 'node-1', to: 'loadBalancerVIP', expected: 'not permitted' },
    ],
  },
];
