import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Agent } from '../lab.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { linksOf, reaches } from './fixture.ts';
import { callPlugin } from './plugin.ts';
import { createServedNode, installedConfig, type ServedNode } from './served-node.ts';

let served: ServedNode;
let agent: Agent;

const ALL = { ipMasq: true, firewall: true, macspoofchk: true };
const config = (hostPort: number) => ({
  ...installedConfig(served.conflist),
  ...ALL,
  runtimeConfig: {
    portMappings: [{ hostPort, containerPort: 80, protocol: 'tcp' }],
    bandwidth: { egressRate: 1e9, egressBurst: 1e6 },
  },
});

/** What there is on the node of an attachment, or of all: links, rules, notes, reserved addresses. */
const left = (digits = '[0-9a-f]{11}') => {
  const { namespace } = served.node;
  const found = (text: string) => [...new Set(text.match(new RegExp(`\\b(veth|ifb)${digits}\\b`, 'g')))].sort();
  return {
    links: found(
      linksOf(namespace)
        .map(({ ifname }) => ifname)
        .join(' '),
    ),
    rules: found(namespace.run('nft', 'list', 'ruleset')),
    notes: found(notes().join(' ')),
  };
};
const notesFolder = () => join(served.dataDir, 'nodeplane', '.nodeplane');
const notes = () => readdirSync(notesFolder()).filter((name) => name.startsWith('veth'));
const firewall = () => served.node.namespace.run('iptables-nft', '-S').match(/NODEPLANE.*/g) ?? [];
const collected = () => agent.logs().filter(({ msg }) => msg === 'CNI: given back what was left of a pod that is gone');

async function add(hostPort: number): Promise<TestNamespace> {
  const pod = createNamespace(`pod${hostPort}`);
  expect(await served.call('ADD', pod, { config: config(hostPort) })).toMatchObject({ status: 0 });
  return pod;
}

beforeEach(async () => {
  served = createServedNode();
  served.node.namespace.run('iptables-nft', '-P', 'FORWARD', 'DROP');
  agent = await served.startAgent();
});
afterEach(removeAll);

describe('an agent that starts', () => {
  it('gives back what pods left whose namespace is gone, and leaves those that live alone', async () => {
    const [lives, vanishes, other] = [await add(8080), await add(8081), await add(8082)];
    await agent.kill();
    for (const pod of [vanishes, other]) pod.remove();
    await expect.poll(() => left().links.filter((name) => name.startsWith('veth'))).toHaveLength(1);
    expect(left()).toMatchObject({ rules: { length: 3 }, notes: { length: 3 } });
    // What nobody noted: it may be of a pod of another plugin, on a node that comes from there.
    writeFileSync(join(served.dataDir, 'nodeplane', '10.244.1.200'), 'theirs\r\neth0');

    agent = await served.startAgent();
    await expect.poll(served.reservations).toEqual(['10.244.1.2', '10.244.1.200', 'fd00:10:244:1::2']);
    const [digits] = left().notes.map((name) => name.replace('veth', ''));
    expect(left()).toEqual(left(digits));
    expect(left()).toMatchObject({ links: { length: 2 }, rules: { length: 1 }, notes: { length: 1 } });
    expect(reaches(lives, '10.244.1.1')).toBe(true);
    await expect.poll(() => collected()).toHaveLength(2);
    const facts = { network: 'nodeplane', ifname: 'eth0', container: vanishes.name };
    expect(collected()).toContainEqual(
      expect.objectContaining({ ...facts, addresses: ['10.244.1.3', 'fd00:10:244:1::3'] }),
    );
    expect(await agent.metrics()).toContain('nodeplane_cni_collected_addresses_total 4');
    expect(await served.call('DEL', lives)).toMatchObject({ status: 0 });
    expect(left()).toEqual({ links: [], rules: [], notes: [] });
    expect(firewall()).toEqual([]);
  });

  it.each(['reserved', 'veth', 'ports', 'ifb', 'features'])(
    'gives back what an ADD killed after "%s" left',
    async (step) => {
      const lives = await add(8080);
      const [before, rules] = [left(), firewall()];
      await agent.stop();
      const enter = ['ip', 'netns', 'exec', served.node.namespace.name, 'env', `NODEPLANE_CNI_FAILPOINT=${step}`];
      agent = await served.startAgent({ enter });
      const pod = createNamespace('killed');
      expect(await served.call('ADD', pod, { config: config(8081) })).toMatchObject({ status: 1, json: { code: 11 } });
      expect(await agent.ended).toBe(137);
      expect(left().notes).toHaveLength(2);

      agent = await served.startAgent();
      await expect.poll(served.reservations).toEqual(['10.244.1.2', 'fd00:10:244:1::2']);
      expect(left()).toEqual(before);
      expect(firewall()).toEqual(rules);
      expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo']);
      expect(reaches(lives, '10.244.1.1')).toBe(true);
      expect(await served.call('ADD', pod, { config: config(8081) })).toMatchObject({ status: 0 });
    },
  );

  it('gives back what was reserved before the node was started anew', async () => {
    const pod = await add(8080);
    await agent.kill();
    pod.remove();
    await expect.poll(() => left().links.filter((name) => name.startsWith('veth'))).toEqual([]);
    const earlier = 'an-earlier-run';
    writeFileSync(join(notesFolder(), 'boot-id'), earlier);
    for (const name of notes()) {
      const path = join(notesFolder(), name);
      writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), bootId: earlier }));
    }
    agent = await served.startAgent();
    await expect.poll(served.reservations).toEqual([]);
    expect(left()).toEqual({ links: [], rules: [], notes: [] });
    expect(await served.call('ADD', createNamespace('next'))).toMatchObject({ status: 0 });
  });

  it('takes what is left of pods that have no address from it, and leaves links in other namespaces alone', async () => {
    const pod = createNamespace('pod');
    const { ipam: _, ...rest } = config(8080) as Record<string, unknown>;
    expect(await served.call('ADD', pod, { config: rest })).toMatchObject({ status: 0 });
    const elsewhere = createNamespace('elsewhere');
    const call = {
      ...config(8081),
      ipam: { type: 'nodeplane', dataDir: served.dataDir, ranges: [[{ subnet: '10.9.0.0/24' }]] },
    };
    const stands = await callPlugin(elsewhere, { command: 'ADD', netns: createNamespace('stands'), config: call });
    expect(stands).toMatchObject({ status: 0 });
    await agent.kill();
    expect(left()).toMatchObject({ links: { length: 2 }, rules: { length: 1 }, notes: { length: 2 } });
    pod.remove();
    await expect.poll(() => left().links).toHaveLength(1);
    agent = await served.startAgent();
    await expect.poll(() => left()).toMatchObject({ links: [], rules: [], notes: { length: 1 } });
    expect(collected()).toEqual([expect.objectContaining({ container: pod.name, addresses: [] })]);
    expect(served.reservations()).toEqual(['10.9.0.2']);
  });
});
