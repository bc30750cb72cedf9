import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createLab, removeAll } from '../lab/lab.ts';
import { waysToHave } from './conflists.ts';
import { type Containerd, startContainerd } from './containerd.ts';
import { serveStandAlone, standAloneNetwork } from './plugins.ts';
import { type CriPod, runPod } from './pod.ts';
import { tracesOf } from './traces.ts';

// A pod's hostPorts: the kubelet passes them to containerd, and containerd to the plugins as `portMappings`.

afterAll(removeAll);

describe.each(waysToHave('portMappings'))('a hostPort served %s', (_way, served) => {
  const lab = createLab();
  const node = lab.addNode({ name: 'node-1' });
  const outside = lab.addClient('outside');
  let containerd: Containerd;
  let client: CriPod;
  let before: string[];
  beforeAll(async () => {
    containerd = await startContainerd(node);
    await serveStandAlone(containerd, served(standAloneNetwork(node)));
    client = await runPod(containerd, 'client');
    const first = await runPod(containerd, 'first', { portMappings: [{ hostPort: 8080, containerPort: 80 }] });
    await first.remove();
    before = tracesOf(node, containerd.enclosure);
  });
  afterEach(async () => {
    await expect.poll(() => tracesOf(node, containerd.enclosure)).toEqual(before);
  });

  it('leads to the pod from outside, from pods and from the pod itself, until the pod is removed', async () => {
    const web = await runPod(containerd, 'web', {
      portMappings: [
        { hostPort: 8080, containerPort: 80 },
        { hostPort: 5353, containerPort: 53, protocol: 'UDP' },
      ],
    });
    await web.serve({ port: 80 });
    await web.serve({ port: 53, protocol: 'UDP' });
    for (const family of ['IPv4', 'IPv6'] as const) {
      const ip = node.ip(family);
      const fromOutside = { kind: 'answered', by: 'web', source: outside.ip(family) };
      expect(await outside.connect({ ip, port: 8080 })).toMatchObject(fromOutside);
      expect(await outside.connect({ ip, port: 5353, protocol: 'UDP' })).toMatchObject(fromOutside);
      expect(await node.connect({ ip, port: 8080 })).toMatchObject({ kind: 'answered', by: 'web' });
      expect(await client.connect({ ip, port: 8080 })).toMatchObject({ kind: 'answered', by: 'web' });
      expect(await web.connect({ ip, port: 8080 })).toMatchObject({ kind: 'answered', by: 'web' });
    }
    await web.remove();
    expect(await outside.connect({ ip: node.ip(), port: 8080 })).toMatchObject({ kind: 'refused' });
  });

  it('is on the given address of the node only', async () => {
    const portMappings = [{ hostPort: 8080, containerPort: 80, hostIp: node.ip() }];
    const web = await runPod(containerd, 'web', { portMappings });
    await web.serve({ port: 80 });
    expect(await outside.connect({ ip: node.ip(), port: 8080 })).toMatchObject({ kind: 'answered', by: 'web' });
    expect(await outside.connect({ ip: node.ip('IPv6'), port: 8080 })).toMatchObject({ kind: 'refused' });
    await web.remove();
  });
});
