import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { createNode, IPV4, linksOf, reaches } from './fixture.ts';
import { callPlugin } from './plugin.ts';

// The reference plugins, as Debian packages them (containernetworking-plugins).
const REFERENCE = '/usr/lib/cni';

beforeAll(() => {
  if (!existsSync(`${REFERENCE}/host-local`)) {
    throw new Error(
      `Need ${REFERENCE}/host-local: apt-get install --no-install-recommends containernetworking-plugins`,
    );
  }
});
afterEach(removeAll);

/** A node whose network is served by our plugin and by the reference's, on one directory. */
function sharedNode(ranges: object[][] = [[IPV4]]) {
  const node = createNode();
  const config = node.config(
    { cniVersion: '1.0.0', isGateway: true, isDefaultGateway: true, bridge: 'cni0' },
    { ranges },
  );
  const bare = (namespace: TestNamespace, containerId: string) => ({
    containerId,
    netns: namespace,
    config,
    env: { CNI_PATH: REFERENCE },
  });
  return {
    ...node,
    folder: join(node.dataDir, 'net'),
    /** host-local alone reserves; it does not look at the namespace. */
    async theirs(command: 'ADD' | 'DEL', pod: TestNamespace, containerId: string, plugin = 'host-local') {
      const call = { command, ...bare(pod, containerId), program: `${REFERENCE}/${plugin}` };
      const outcome = await callPlugin(node.namespace, call);
      if (outcome.status !== 0) throw new Error(`${plugin} ${command} failed: ${outcome.stdout}${outcome.stderr}`);
      return outcome.json?.ips?.map(({ address }) => address.replace(/\/.*/, '')) ?? [];
    },
    async ours(command: 'ADD' | 'DEL', pod: TestNamespace, containerId: string) {
      const call = bare(pod, containerId);
      if (command === 'DEL') return node.del(pod, call).then(() => []);
      return (await node.add(pod, call)).ips!.map(({ address }) => address.replace(/\/.*/, ''));
    },
  };
}

describe('with the reference host-local on the same directory', () => {
  it('addresses are reserved by either and released by the other', async () => {
    const node = sharedNode([[IPV4], [{ subnet: 'fd00:10:244:1::/64' }]]);
    const pods = [createNamespace('a'), createNamespace('b')] as const;
    const first = await node.theirs('ADD', pods[0], 'a');
    const second = await node.ours('ADD', pods[1], 'b');
    expect([first, second]).toEqual([
      ['10.244.1.2', 'fd00:10:244:1::2'],
      ['10.244.1.3', 'fd00:10:244:1::3'],
    ]);
    // Byte for byte the same kind of record.
    const read = (name: string) => readFileSync(join(node.folder, name), 'utf8');
    expect(read(first[0]!).replace(/^a/, '')).toBe(read(second[0]!).replace(/^b/, ''));
    await node.ours('DEL', pods[0], 'a');
    expect(node.reservations().sort()).toEqual([...second].sort());
    await node.theirs('DEL', pods[1], 'b');
    expect(node.reservations()).toEqual([]);
  });

  it('the round goes on where the other left it', async () => {
    const node = sharedNode();
    const pod = createNamespace('pod');
    expect(await node.theirs('ADD', pod, 'a')).toEqual(['10.244.1.2']);
    await node.theirs('DEL', pod, 'a');
    expect(await node.ours('ADD', pod, 'b')).toEqual(['10.244.1.3']);
    await node.ours('DEL', pod, 'b');
    expect(await node.theirs('ADD', pod, 'c')).toEqual(['10.244.1.4']);
  });

  it('both at once never hand out an address twice, to the last one', async () => {
    // A /28 has 13 usable addresses besides the gateway.
    const node = sharedNode([[{ subnet: '10.244.1.0/28' }]]);
    const pods = Array.from({ length: 13 }, (_, i) => createNamespace(`pod${i}`));
    const given = await Promise.all(
      pods.map((pod, i) => (i % 2 ? node.theirs('ADD', pod, `c${i}`) : node.ours('ADD', pod, `c${i}`))),
    );
    expect(new Set(given.flat()).size).toBe(13);
    const full = /no IP addresses available in range set: 10\.244\.1\.1-10\.244\.1\.14/;
    const extra = createNamespace('extra');
    await expect(node.theirs('ADD', extra, 'more')).rejects.toThrow(full);
    await expect(node.ours('ADD', extra, 'more')).rejects.toThrow(full);
    await Promise.all(
      pods.map((pod, i) => (i % 2 ? node.ours('DEL', pod, `c${i}`) : node.theirs('DEL', pod, `c${i}`))),
    );
    expect(node.reservations()).toEqual([]);
  });

  it('what a killed run of ours left does not disturb theirs', async () => {
    const node = sharedNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    await node.ours('ADD', pod, 'a');
    const leftover = join(node.folder, '.nodeplane-tmp');
    writeFileSync(leftover, 'b\r\neth0');
    expect(await node.theirs('ADD', other, 'c')).toEqual(['10.244.1.3']);
    await node.theirs('DEL', other, 'c');
    expect(existsSync(leftover)).toBe(true);
    await node.ours('DEL', pod, 'a');
    expect(existsSync(leftover)).toBe(false);
  });
});

it('a node moves from the reference bridge plugin to ours and back with its pods running', async () => {
  const node = sharedNode();
  const [old, young, late] = [createNamespace('old'), createNamespace('young'), createNamespace('late')];
  const [oldIp] = await node.theirs('ADD', old, 'old', 'bridge');
  const [youngIp] = await node.ours('ADD', young, 'young');
  expect([oldIp, youngIp]).toEqual(['10.244.1.2', '10.244.1.3']);
  expect(reaches(old, youngIp!)).toBe(true);
  expect(reaches(young, oldIp!)).toBe(true);
  expect(reaches(old, '10.244.1.1')).toBe(true);

  await node.ours('DEL', old, 'old');
  expect(linksOf(old).map(({ ifname }) => ifname)).toEqual(['lo']);
  expect(node.reservations()).toEqual([youngIp]);

  const [lateIp] = await node.theirs('ADD', late, 'late', 'bridge');
  expect(lateIp).toBe('10.244.1.4');
  expect(reaches(late, youngIp!)).toBe(true);
  await node.theirs('DEL', young, 'young', 'bridge');
  expect(linksOf(young).map(({ ifname }) => ifname)).toEqual(['lo']);
  expect(node.reservations()).toEqual([lateIp]);
});
