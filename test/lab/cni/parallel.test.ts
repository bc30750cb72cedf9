import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { createNode, linksOf, reaches } from './fixture.ts';
import { callPlugin, startPlugin } from './plugin.ts';

afterEach(removeAll);

it('attaches twenty pods at once to a node without bridge, and detaches them at once', async () => {
  const node = createNode();
  const pods = Array.from({ length: 20 }, (_, i) => createNamespace(`pod${i}`));
  const results = await Promise.all(pods.map((pod) => node.add(pod)));
  const addresses = results.flatMap(({ ips }) => ips!.map(({ address }) => address.replace(/\/.*/, '')));
  expect(new Set(addresses).size).toBe(40);
  expect(node.reservations().sort()).toEqual([...addresses].sort());
  const links = linksOf(node.namespace);
  expect(links.filter(({ master, operstate }) => master === 'cni0' && operstate === 'UP')).toHaveLength(20);
  expect(links.find(({ ifname }) => ifname === 'cni0')!.addresses).toEqual(['10.244.1.1/24', 'fd00:10:244:1::1/64']);
  expect(reaches(pods[0]!, results[19]!.ips![0]!.address.replace(/\/.*/, ''))).toBe(true);

  await Promise.all(pods.map((pod) => node.del(pod)));
  expect(node.reservations()).toEqual([]);
  expect(linksOf(node.namespace).map(({ ifname }) => ifname)).toEqual(['lo', 'cni0']);
});

it('touches what pods share only while no other process of the node does', async () => {
  const node = createNode();
  const pod = createNamespace('pod');
  const holder = startPlugin(node.namespace, {
    command: '',
    config: '',
    program: 'bash',
    args: [
      '-c',
      'umask 077; mkdir -p /run/nodeplane; exec 9>>/run/nodeplane/node.lock; flock 9; echo "{}" >&2; exec sleep 60',
    ],
  });
  await new Promise((resolve) => holder.child.stderr!.once('data', resolve));
  const adding = node.add(pod);
  while (node.reservations().length < 2) await setTimeout(10);
  await setTimeout(300);
  expect(linksOf(node.namespace).map(({ ifname }) => ifname)).toEqual(['lo']);
  holder.child.kill('SIGKILL');
  await adding;
  expect(reaches(pod, '10.244.1.1')).toBe(true);
});

it('does not take the bridge away from others when an ADD fails beside them', async () => {
  for (let round = 0; round < 3; round++) {
    const node = createNode();
    const pods = Array.from({ length: 8 }, (_, i) => createNamespace(`pod${i}`));
    const unreachable = node.config({}, { routes: [{ dst: '10.30.0.0/16', gw: '192.168.200.1' }] });
    const outcomes = await Promise.all(
      pods.map((netns, i) =>
        callPlugin(node.namespace, {
          command: 'ADD',
          containerId: netns.name,
          netns,
          config: i % 2 === 0 ? unreachable : node.config(),
        }),
      ),
    );
    expect(outcomes.map(({ json }) => json?.code)).toEqual(pods.map((_, i) => (i % 2 === 0 ? 105 : undefined)));
    const working = pods.filter((_, i) => i % 2 === 1);
    for (const pod of working) expect(reaches(pod, '10.244.1.1')).toBe(true);
    expect(node.reservations()).toHaveLength(2 * working.length);
    removeAll();
  }
});

it('leaves nothing that DEL does not remove, whenever ADD is killed', async () => {
  const node = createNode();
  const pod = createNamespace('pod');
  const call = { containerId: pod.name, netns: pod, config: node.config() };
  let delayMs = 100;
  let killed = 0;
  for (let round = 0; round < 24; round++) {
    const { child, outcome } = startPlugin(node.namespace, { command: 'ADD', ...call });
    const killing = new AbortController();
    setTimeout(delayMs, undefined, { signal: killing.signal }).then(
      () => child.kill('SIGKILL'),
      () => {},
    );
    const { status } = await outcome;
    killing.abort();
    if (status === null) killed++;
    // Hover about the end of the run: before it lies what the program does to the kernel and the disk.
    delayMs *= status === null ? 1.04 : 0.93;
    await node.del(pod);
    expect(node.reservations(), `after ${delayMs} ms`).toEqual([]);
    expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo']);
    expect(linksOf(node.namespace).filter(({ ifname }) => ifname.startsWith('veth'))).toEqual([]);
  }
  expect(killed).toBeGreaterThan(4);
  // A bridge that was made half-way is finished by the next ADD.
  await node.add(pod);
  expect(reaches(pod, '10.244.1.1')).toBe(true);
  expect(reaches(pod, 'fd00:10:244:1::1')).toBe(true);
});
