import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { type BareNode, createNode, linksOf } from './fixture.ts';
import { holdNetwork, holdNode, waitsForReservations } from './lock-holder.ts';
import { startPlugin } from './plugin.ts';

// A runtime that was killed and started anew may send the DEL of a pod while the plugin that it had started for the ADD still
// runs. An agent has them wait for each other; plugins that stand alone know nothing of each other.

afterEach(removeAll);

const OVERTAKEN = { status: 1, json: { code: 5, msg: expect.stringContaining('it was deleted while it was made') } };

const callOf = (node: BareNode, pod: TestNamespace) => ({ containerId: pod.name, netns: pod, config: node.config() });

/** An ADD that has its addresses and no link yet, and goes on when the function is called. */
async function startHeldAdd(node: BareNode, pod: TestNamespace) {
  const release = await holdNode();
  const adding = startPlugin(node.namespace, { command: 'ADD', ...callOf(node, pod) });
  await expect.poll(() => node.reservations()).toHaveLength(2);
  return { adding, release };
}

function left(node: BareNode, pod: TestNamespace) {
  const veths = linksOf(node.namespace).filter(({ ifname }) => ifname.startsWith('veth'));
  return { links: [...veths, ...linksOf(pod)].map(({ ifname }) => ifname), reservations: node.reservations() };
}

const NOTHING = { links: ['lo'], reservations: [] };

it('an ADD that a whole DEL overtook fails, and takes back what it made since', async () => {
  const node = createNode();
  const pod = createNamespace('pod');
  const { adding, release } = await startHeldAdd(node, pod);
  await node.del(pod);
  release();
  expect(await adding.outcome).toMatchObject(OVERTAKEN);
  expect(left(node, pod)).toEqual(NOTHING);
});

it('so does one that ends between two steps of a DEL, which has found no link and not yet given the addresses back', async () => {
  const node = createNode();
  const pod = createNamespace('pod');
  const { adding, release } = await startHeldAdd(node, pod);
  const releaseNetwork = await holdNetwork(join(node.dataDir, 'net'));
  const deleting = startPlugin(node.namespace, { command: 'DEL', ...callOf(node, pod) });
  await expect.poll(() => waitsForReservations(deleting.child.pid!)).toBe(true);
  release();
  const { child } = adding;
  await expect.poll(() => child.exitCode !== null || waitsForReservations(child.pid!)).toBe(true);
  releaseNetwork();
  expect(await deleting.outcome).toMatchObject({ status: 0, stdout: '' });
  expect(await adding.outcome).toMatchObject(OVERTAKEN);
  expect(left(node, pod)).toEqual(NOTHING);
  await node.add(pod);
});
