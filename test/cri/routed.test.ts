import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLab, removeAll } from '../lab/lab.ts';
import { type Containerd, startContainerd } from './containerd.ts';
import { serveStandAlone, standAloneNetwork } from './plugins.ts';
import { runPod } from './pod.ts';
import { tracesOf } from './traces.ts';

// Pods without a bridge: containerd takes their addresses from a result like any other.

const lab = createLab();
const node = lab.addNode({ name: 'node-1' });
let containerd: Containerd;
beforeAll(async () => {
  containerd = await startContainerd(node);
  const { plugins, ...list } = standAloneNetwork(node);
  const [{ type, ipam }] = plugins as [{ type: string; ipam?: unknown }];
  await serveStandAlone(containerd, { ...list, plugins: [{ type, mode: 'routed', ipam }] });
  await (await runPod(containerd, 'first')).remove();
});
afterAll(removeAll);

it('makes routed pods that reach each other and their node, and leaves nothing of them', async () => {
  const before = tracesOf(node, containerd.enclosure);
  const [web, client] = [await runPod(containerd, 'web'), await runPod(containerd, 'client')];
  await web.serve({ port: 8080 });
  await node.serve({ port: 8080 });
  for (const family of ['IPv4', 'IPv6'] as const) {
    const target = { ip: web.ip(family), port: 8080 };
    const fromClient = { kind: 'answered', by: 'web', source: client.ip(family) };
    expect(await client.connect(target)).toMatchObject(fromClient);
    expect(await node.connect(target)).toMatchObject({ kind: 'answered', by: 'web' });
    const atNode = await web.connect({ ip: node.ip(family), port: 8080 });
    expect(atNode).toMatchObject({ kind: 'answered', by: 'node-1', source: web.ip(family) });
  }
  expect(node.namespace.run('ip', 'route', 'show', web.ip())).toContain('scope link');
  for (const pod of [web, client]) await pod.remove();
  await expect.poll(() => tracesOf(node, containerd.enclosure)).toEqual(before);
});
