import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { type BareNode, createNode, linksOf, reaches, routesOf } from './fixture.ts';
import { callPlugin } from './plugin.ts';

afterEach(removeAll);

/** The steps of ADD after which the process can be killed, in their order. */
const STEPS = [
  'start',
  'journal',
  'address-file',
  'reserved',
  'bridge',
  'veth-made',
  'veth',
  'host-link',
  'pod-link',
  'features',
  'complete',
] as const;

/** What of pods is left on a node: their links, routes, addresses and notes. */
function leftovers(node: BareNode, pods: readonly TestNamespace[]) {
  const notes = join(node.dataDir, 'net', '.nodeplane');
  return {
    links: [node.namespace, ...pods].flatMap((namespace) =>
      linksOf(namespace).filter(({ ifname }) => /^(veth|eth)/.test(ifname)),
    ),
    routes: routesOf(node.namespace).filter((route) => route.includes('veth')),
    rules: node.namespace.run('nft', 'list', 'ruleset').match(/elements = .*/g) ?? [],
    reservations: node.reservations(),
    notes: existsSync(notes) ? readdirSync(notes).filter((name) => name !== 'boot-id') : [],
    temporaries: readdirSync(node.dataDir, { recursive: true }).filter((name) => String(name).includes('tmp')),
  };
}

const NOTHING = { links: [], routes: [], rules: [], reservations: [], notes: [], temporaries: [] };

const MODES = [
  ['bridge', {}, STEPS],
  ['routed', { mode: 'routed' }, STEPS.filter((step) => step !== 'bridge')],
] as const;

describe.each(MODES)('an ADD in mode %s killed', (_, mode, steps) => {
  const features = {
    ipMasq: true,
    runtimeConfig: { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: 'tcp' }] },
  };

  it.each(steps)('after the step "%s" leaves nothing that DEL does not remove', async (step) => {
    const node = createNode();
    const pod = createNamespace('pod');
    await killAt(node, pod, step, node.config({ ...mode, ...features }));
    await node.del(pod, { config: node.config(mode) });
    expect(leftovers(node, [pod])).toEqual(NOTHING);
  });

  it.each(steps)('after the step "%s" leaves nothing that GC does not remove', async (step) => {
    const node = createNode();
    const [pod, other] = [createNamespace('pod'), createNamespace('other')];
    await node.add(other, { config: node.config({ ...mode, ...features, runtimeConfig: {} }) });
    await killAt(node, pod, step, node.config({ ...mode, ...features }));
    const valid = { 'cni.dev/valid-attachments': [{ containerID: other.name, ifname: 'eth0' }] };
    const gc = await callPlugin(node.namespace, { command: 'GC', config: node.config({ ...mode, ...valid }) });
    expect(gc).toMatchObject({ status: 0 });
    expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo']);
    expect(node.reservations().sort()).toEqual(['10.244.1.2', 'fd00:10:244:1::2']);
    expect(reaches(node.namespace, 'fd00:10:244:1::2')).toBe(true);
    await node.del(other, { config: node.config(mode) });
    expect(leftovers(node, [pod, other])).toEqual(NOTHING);
  });

  it.each(steps)('after the step "%s" makes no address be given twice, and the next pod works', async (step) => {
    const node = createNode();
    const [pod, other, again] = [createNamespace('pod'), createNamespace('other'), createNamespace('again')];
    await killAt(node, pod, step, node.config({ ...mode, ...features }));
    const plain = node.config({ ...mode, ipMasq: true });
    const results = [await node.add(other, { config: plain })];
    // As kubelet does: the failed sandbox is deleted, and another one made in its place.
    await node.del(pod, { config: plain });
    results.push(await node.add(again, { config: node.config({ ...mode, ...features }) }));
    const ips = results.flatMap((result) => result.ips!.map(({ address }) => address.replace(/\/.*/, '')));
    expect(new Set(ips).size).toBe(4);
    expect(node.reservations().sort()).toEqual([...ips].sort());
    expect(reaches(other, ips[2]!)).toBe(true);
    for (const left of [other, again]) await node.del(left, { config: plain });
    expect(leftovers(node, [pod, other, again])).toEqual(NOTHING);
  });
});

describe.each(MODES)('a DEL in mode %s killed', (_, mode) => {
  it.each(['link-gone', 'features-gone', 'addresses-gone'])(
    'after the step "%s" is finished by the next one',
    async (step) => {
      const node = createNode();
      const [pod, other] = [createNamespace('pod'), createNamespace('other')];
      const config = node.config({ ...mode, ipMasq: true });
      await node.add(pod, { config });
      const env = { NODEPLANE_CNI_FAILPOINT: step };
      const call = { command: 'DEL', containerId: pod.name, netns: pod, config, env };
      expect((await callPlugin(node.namespace, call)).status).toBeNull();
      // Meanwhile the address may be given to somebody else, who keeps it.
      const result = await node.add(other, { config });
      await node.del(pod, { config });
      expect(node.reservations().sort()).toEqual(result.ips!.map(({ address }) => address.replace(/\/.*/, '')).sort());
      await node.del(other, { config });
      expect(leftovers(node, [pod, other])).toEqual(NOTHING);
    },
  );
});

async function killAt(node: BareNode, pod: TestNamespace, step: string, config: object): Promise<void> {
  const env = { NODEPLANE_CNI_FAILPOINT: step };
  const call = { command: 'ADD', containerId: pod.name, netns: pod, config, env };
  const { status, stdout } = await callPlugin(node.namespace, call);
  expect({ status, stdout }, `ADD was not killed after "${step}"`).toEqual({ status: null, stdout: '' });
}
