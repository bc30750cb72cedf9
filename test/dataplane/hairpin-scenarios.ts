import type { Scenario } from './scenario.ts';

/** Pods that reach themselves, wherever they are: what comes back to them must have another source than their own. */
export const HAIRPIN_SCENARIOS: readonly Scenario[] = [
  {
    name: 'a pod of another node reaches itself by way of this one, policy Cluster',
    protocols: ['TCP', 'UDP'],
    spec: { type: 'NodePort' },
    endpoints: [{ pod: 'far' }],
    checks: [
      { from: 'far', to: 'nodePort', expected: { by: ['far'], source: 'masqueraded' } },
      { from: 'far', to: 'clusterIP', expected: { by: ['far'], source: 'masqueraded' } },
    ],
  },
  {
    name: 'a pod of another node reaches itself by way of this one, policy Local; others keep their address',
    protocols: ['TCP', 'UDP'],
    spec: { type: 'NodePort', externalIP: true, externalTrafficPolicy: 'Local' },
    endpoints: [{ pod: 'far' }],
    checks: [
      { from: 'far', to: 'nodePort', expected: { by: ['far'], source: 'masqueraded' } },
      { from: 'far', to: 'externalIP', expected: { by: ['far'], source: 'masqueraded' } },
      { from: 'far', to: 'clusterIP', expected: { by: ['far'], source: 'masqueraded' } },
      { from: 'client', to: 'nodePort', expected: { by: ['far'], source: 'own' } },
    ],
  },
  {
    name: 'a pod reaches itself through a Service with affinity and policy Local',
    spec: { type: 'NodePort', internalTrafficPolicy: 'Local', sessionAffinity: 'ClientIP' },
    endpoints: [{ pod: 'web-2' }],
    checks: [
      { from: 'web-2', to: 'clusterIP', expected: { by: ['web-2'], source: 'masqueraded' } },
      { from: 'web-1', to: 'clusterIP', expected: { by: ['web-2'], source: 'own' } },
    ],
  },
];
