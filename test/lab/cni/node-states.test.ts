import { afterEach, describe, expect, it } from 'vitest';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { NODE_STATES, prepareNode } from '../node-state.ts';
import { refusedChanges } from '../refusals.ts';
import { createFeatureWorld, type FeatureWorld } from './feature-world.ts';

const BANDWIDTH = { ingressRate: 8_000_000, ingressBurst: 8_000_000, egressRate: 8_000_000, egressBurst: 8_000_000 };
const portMappings = (hostPort: number) => [{ hostPort, containerPort: 80 }];
/** What pods ask for, one after the other; the last one has the standard configuration, and all that a pod may wish. */
const PODS = {
  plain: {},
  masquerade: { ipMasq: true },
  ports: { runtimeConfig: { portMappings: portMappings(8080) } },
  bandwidth: { runtimeConfig: { bandwidth: BANDWIDTH } },
  firewall: { firewall: true },
  guarded: { ingressPolicy: 'same-bridge', macspoofchk: true },
  standard: {
    ipMasq: true,
    firewall: true,
    runtimeConfig: { portMappings: portMappings(8081), bandwidth: BANDWIDTH },
  },
} as const;

afterEach(removeAll);

/** The changes that the kernel refused during one call, which succeeds. */
async function refusedBy(world: FeatureWorld, command: string, pod: TestNamespace, change: object) {
  const outcome = await world.call(command, pod, change, { env: { NODEPLANE_NETLINK_DEBUG: '1' } });
  if (outcome.status !== 0) throw new Error(`${command} failed: ${outcome.stdout}`);
  // Guards the test: without these lines nothing would be counted.
  if (!outcome.stderr.includes('netlink < NLMSG_ERROR')) throw new Error('The plugin printed no acknowledgement');
  return refusedChanges(outcome.stderr).map((refused) => ({ command, pod: pod.name, ...refused }));
}

describe.each(NODE_STATES)('a node in the state "%s"', (state) => {
  it('refuses nothing of an ordinary ADD or DEL, and is as before when the pods are gone', async () => {
    const world = createFeatureWorld();
    prepareNode(world.node.namespace, state);
    const before = world.node.namespace.run('nft', '--stateless', 'list', 'ruleset');
    const pods = Object.entries(PODS).map(([name, change]) => [createNamespace(name), change] as const);
    const refused = [];
    for (const [pod, change] of pods) refused.push(...(await refusedBy(world, 'ADD', pod, change)));
    for (const [pod, change] of pods) refused.push(...(await refusedBy(world, 'DEL', pod, change)));
    refused.push(...(await refusedBy(world, 'DEL', ...pods.at(-1)!)));
    expect(refused).toEqual([]);
    // Our own tables stay; those of others are as they were.
    const ours = /table (inet|bridge) nodeplane-cni \{[\s\S]*?\n\}\n/g;
    expect(world.node.namespace.run('nft', '--stateless', 'list', 'ruleset').replaceAll(ours, '')).toBe(before);
  });
});
