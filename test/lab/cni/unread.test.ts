import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { createNode, linksOf } from './fixture.ts';
import { holdNetwork, holdReservations, waitsForReservations } from './lock-holder.ts';
import { startPlugin } from './plugin.ts';
import { createServedNode } from './served-node.ts';

// A runtime that is killed leaves its plugins running. Nobody reads the result of an ADD then, and whether a DEL comes later,
// came already, or comes never is up to the runtime.

afterEach(removeAll);

/** The names of a node's links to pods, and of the pod's links. */
function linksBetween(node: TestNamespace, pod: TestNamespace): string[] {
  const veths = linksOf(node).filter(({ ifname }) => ifname.startsWith('veth'));
  return [...veths, ...linksOf(pod)].map(({ ifname }) => ifname);
}

const ended = (child: ChildProcess) => new Promise((resolve) => child.once('exit', resolve));

it('takes an ADD back whose result nobody reads, also when a DEL overtook it', async () => {
  const node = createNode();
  const pod = createNamespace('pod');
  await node.add(pod);
  await node.del(pod);
  const release = await holdNetwork(join(node.dataDir, 'net'));
  const call = { command: 'ADD', containerId: pod.name, netns: pod, config: node.config() };
  const { child } = startPlugin(node.namespace, call);
  await expect.poll(() => waitsForReservations(child.pid!)).toBe(true);
  child.kill('SIGSTOP');
  child.stdout!.destroy();
  release();
  await node.del(pod);
  const end = ended(child);
  child.kill('SIGCONT');
  await end;
  expect(linksBetween(node.namespace, pod)).toEqual(['lo']);
  expect(node.reservations()).toEqual([]);
  await node.add(pod);
});

it('takes an ADD back that an agent has served, or keeps that for the next agent', async () => {
  const served = createServedNode();
  const agent = await served.startAgent();
  const pod = createNamespace('pod');
  const first = await unread();
  await first.end;
  const nothing = { links: ['lo'], reservations: [], kept: [] };
  expect(left()).toEqual(nothing);

  const { child, end } = await unread('SIGSTOP');
  // The agent answers, the plugin does not get to read it while there is an agent.
  await expect
    .poll(() => agent.logs().filter(({ verb, container }) => verb === 'ADD' && container === pod.name))
    .toHaveLength(2);
  await agent.kill();
  child.kill('SIGCONT');
  await end;
  expect(left().kept).toHaveLength(1);
  await served.startAgent();
  expect(left()).toEqual(nothing);

  function left() {
    const links = linksBetween(served.node.namespace, pod);
    return { links, reservations: served.reservations(), kept: served.kept() };
  }

  /** An ADD whose reader leaves while it is under way; the plugin may be stopped then. */
  async function unread(signal?: NodeJS.Signals) {
    const release = await holdReservations(served);
    const { child } = served.start('ADD', pod);
    await expect.poll(() => waitsForReservations(agent.pid)).toBe(true);
    if (signal) child.kill(signal);
    child.stdout!.destroy();
    const end = ended(child);
    release();
    return { child, end };
  }
});
