import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// What rules of ours drop because it was configured is no drift: nobody changed them, and no agent repairs them.

const [VIP, FAR] = ['10.96.0.10', '10.96.0.11'];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, other, far, client } = world;
const [plugin] = node.conflist.plugins;
const { bridge: _, hairpinMode: __, isDefaultGateway: ___, ...others } = plugin as Record<string, unknown>;
const routed = (ingressPolicy: string) => ({
  ...node.conflist,
  plugins: [{ ...others, type: plugin!.type, mode: 'routed', ingressPolicy }],
});
const [one, two, open] = (['isolated', 'isolated', 'open'] as const).map((policy, index) =>
  node.addPod(`routed-${index}`, { conflist: routed(policy) }),
);

beforeAll(async () => {
  await two!.serve({ port: TARGET });
  const key = join(world.lab.folder, 'wireguard.key');
  await world.begin(
    [...served('shop/two', VIP, [on(node, two!.ip())]), ...served('shop/far', FAR, [on(other, far.ip())])],
    ...['--routes', 'wireguard', '--routes-wireguard-key-file', key],
  );
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

it('ingress-policy: pods are kept apart by the CNI configuration, those without a policy are not', async () => {
  for (const [ip, port] of [
    [two!.ip(), TARGET],
    [VIP, 80],
  ] as const) {
    const { cause, remedy } = await faults.expectCode(`${ip}:${port}`, one!.ip(), 'ingress-policy');
    expect(cause).toContain('ingressPolicy of the CNI configuration keeps these pods apart: dropped by table inet');
    expect(remedy[0]).toContain('"open"');
    expect(await answers(one!, ip, port)).toBe(false);
    await faults.expectWorks(`${ip}:${port}`, open!.ip());
    expect(await answers(open!, ip, port)).toBe(true);
  }
});

/** Without the kernel's WireGuard, or by a route of somebody else. */
it.each<[string, Host]>([
  ['a pod', client],
  ['the node', node],
])('no-peer-route: what is to leave encrypted alone does not leave by another link (%s)', async (_, from) => {
  world.run('ip', 'route', 'replace', '10.244.2.0/24', 'via', other.ip(), 'dev', 'eth0');
  for (const [ip, port] of [
    [far.ip(), TARGET],
    [FAR, 80],
  ] as const) {
    const { cause, remedy } = await faults.expectCode(
      `${ip}:${port}`,
      from === node ? 'node' : from.ip(),
      'no-peer-route',
    );
    expect(cause).toMatch(
      /through WireGuard or not at all.*dropped by table inet nodeplane-routes, chain encrypted-only/,
    );
    expect(remedy[0]).toBe('nodeplane routes');
    expect(await answers(from, ip, port)).toBe(false);
  }
});
