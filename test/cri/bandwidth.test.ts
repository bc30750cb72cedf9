import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLab, removeAll } from '../lab/lab.ts';
import { waysToHave } from './conflists.ts';
import { type Containerd, startContainerd } from './containerd.ts';
import { serveStandAlone, standAloneNetwork } from './plugins.ts';
import { runPod } from './pod.ts';
import { tracesOf } from './traces.ts';

// A pod's bandwidth annotations: containerd passes them to the plugins as `bandwidth`, with the largest burst there is. So
// large a burst that the limit would show in no short transfer; what the kernel was told is looked at instead.

afterAll(removeAll);

describe.each(waysToHave('bandwidth'))('the bandwidth of a pod limited %s', (_way, served) => {
  const lab = createLab();
  const node = lab.addNode({ name: 'node-1' });
  let containerd: Containerd;
  beforeAll(async () => {
    containerd = await startContainerd(node);
    await serveStandAlone(containerd, served(standAloneNetwork(node)));
    await (await runPod(containerd, 'first')).remove();
  });

  it('is what its annotations say in each direction, and the limits go with the pod', async () => {
    const before = tracesOf(node, containerd.enclosure);
    const annotations = { 'kubernetes.io/ingress-bandwidth': '10M', 'kubernetes.io/egress-bandwidth': '20M' };
    const pod = await runPod(containerd, 'limited', { annotations });
    const shapers = node.namespace.run('tc', 'qdisc', 'show');
    for (const rate of ['10Mbit', '20Mbit']) expect(shapers).toMatch(new RegExp(`qdisc tbf .* rate ${rate} `));
    for (const ip of pod.ips) expect(await node.connect({ ip, port: 9 })).toMatchObject({ kind: 'refused' });
    await pod.remove();
    await expect.poll(() => tracesOf(node, containerd.enclosure)).toEqual(before);
  });
});
