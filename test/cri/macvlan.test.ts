import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { createLab, removeAll } from '../lab/lab.ts';
import { type Containerd, startContainerd } from './containerd.ts';
import { removeAllPods } from './kubelet.ts';
import { serveByAgent } from './plugins.ts';
import { runPod } from './pod.ts';
import { tracesOf } from './traces.ts';

// containerd passes the annotations of pods to a plugin whose list declares that it wants them.

const ASKING = { annotations: { 'pod.network.openshift.io/assign-macvlan': 'true' } };
const lab = createLab();
const node = lab.addNode({ name: 'node-1' });
const outside = lab.addClient('outside');
let containerd: Containerd;
beforeAll(async () => {
  containerd = await startContainerd(node);
  await serveByAgent(containerd, node, { flags: ['--cni-macvlan-namespaces', 'default'] });
  await (await runPod(containerd, 'first')).remove();
});
afterEach(() => removeAllPods(containerd));
afterAll(removeAll);

it('a pod of containerd that asks by annotation is on the node’s network too, and leaves nothing', async () => {
  const before = tracesOf(node, containerd.enclosure);
  await outside.serve({ port: 80 });
  const [router, web] = [await runPod(containerd, 'router', ASKING), await runPod(containerd, 'web')];
  expect(web.namespace.run('ip', '-br', 'link')).not.toContain('macvlan0');
  // What containerd calls the pod's addresses are those of eth0.
  expect(router.ips.map((ip) => ip.startsWith('10.244.1.') || ip.startsWith('fd00:10:244:1:'))).toEqual([true, true]);
  router.namespace.run('ip', 'address', 'add', '192.168.50.200/24', 'dev', 'macvlan0');
  const outcome = await router.connect({ ip: outside.ip(), port: 80 });
  expect(outcome).toMatchObject({ kind: 'answered', by: 'outside', source: '192.168.50.200' });
  expect(await router.connect({ ip: node.ip(), port: 9 })).toMatchObject({ kind: 'refused' });
  for (const pod of [router, web]) await pod.remove();
  await expect.poll(() => tracesOf(node, containerd.enclosure)).toEqual(before);
});
