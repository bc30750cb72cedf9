import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { createNode } from './fixture.ts';
import { callPlugin } from './plugin.ts';
import { createServedNode } from './served-node.ts';

// What is kept about pods is removed under them, by a clean-up that went too far. The kernel knows who is there.

afterEach(removeAll);

const addressesOf = ({ name }: TestNamespace, ips: readonly { readonly address: string }[]) => ({
  pod: name,
  ips: ips.map(({ address }) => address.split('/')[0]!),
});

it('the plugin gives no address away that a pod has whose reservation is gone, and the pods end as ever', async () => {
  const node = createNode();
  const pods = ['one', 'two', 'three'].map((name) => createNamespace(name)) as [
    TestNamespace,
    TestNamespace,
    TestNamespace,
  ];
  const [one, two, three] = pods;
  const given = [addressesOf(one, (await node.add(one)).ips!), addressesOf(two, (await node.add(two)).ips!)];
  rmSync(node.dataDir, { recursive: true });
  const { status, json, stderr } = await callPlugin(node.namespace, {
    command: 'ADD',
    containerId: three.name,
    netns: three,
    config: node.config(),
  });
  expect(status).toBe(0);
  expect(stderr).toContain('were removed under running pods; those of 2');
  given.push(addressesOf(three, json!.ips!));
  const all = given.flatMap(({ ips }) => ips);
  expect(new Set(all).size).toBe(all.length);
  expect(node.reservations()).toEqual([...all].sort());
  for (const pod of pods) await node.del(pod);
  expect(node.reservations()).toEqual([]);
});

it('a running agent goes on, with one remark, and collects pods that vanish then', async () => {
  const served = createServedNode();
  const agent = await served.startAgent();
  const [old, next, last] = ['old', 'next', 'last'].map((name) => createNamespace(name)) as [
    TestNamespace,
    TestNamespace,
    TestNamespace,
  ];
  const ipsOf = async (pod: TestNamespace) => addressesOf(pod, (await served.call('ADD', pod)).json!.ips!).ips;
  const given = await ipsOf(old);
  rmSync(served.dataDir, { recursive: true });
  for (const pod of [next, last]) given.push(...(await ipsOf(pod)));
  expect(new Set(given).size).toBe(6);
  const remarks = agent.logs().filter(({ msg }) => String(msg).includes('the plugin remarks'));
  expect(remarks).toHaveLength(1);
  expect(JSON.stringify(remarks)).toContain('removed under running pods');
  old.remove();
  await agent.stop();
  await served.startAgent();
  await expect.poll(() => served.reservations().length).toBe(4);
  for (const pod of [next, last]) expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
  expect(served.reservations()).toEqual([]);
  expect(existsSync(join(served.dataDir, 'nodeplane'))).toBe(true);
});
