import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createLab, removeAll } from '../lab/lab.ts';
import { type Containerd, startContainerd } from './containerd.ts';
import { holdRecords, isRequestHeld } from './held-requests.ts';
import { removeAllPods } from './kubelet.ts';
import { type Served, WAYS_TO_SERVE } from './plugins.ts';
import { runPod } from './pod.ts';
import { reservationsOf, tracesOf } from './traces.ts';

// What a node goes through: its runtime killed, a pod removed twice, a reboot.

afterAll(removeAll);

describe.each(WAYS_TO_SERVE)('with %s, containerd', (_way, serve) => {
  const lab = createLab();
  const node = lab.addNode({ name: 'node-1' });
  let containerd: Containerd;
  let served: Served;
  beforeAll(async () => {
    containerd = await startContainerd(node);
    served = await serve(containerd, node);
    await (await runPod(containerd, 'first')).remove();
  });
  afterEach(() => removeAllPods(containerd));

  const shown = () => tracesOf(node, containerd.enclosure);
  const start = async () => {
    await containerd.start();
    await containerd.networkReady();
  };

  it('keeps pods working while containerd is dead, and removes them by the one that comes after', async () => {
    const before = shown();
    const [web, client] = [await runPod(containerd, 'web'), await runPod(containerd, 'client')];
    await web.serve({ port: 8080 });
    await containerd.kill();
    for (const ip of web.ips) {
      expect(await client.connect({ ip, port: 8080 })).toMatchObject({ kind: 'answered', by: 'web' });
    }
    await start();
    expect(await web.status()).toMatchObject({ state: 'SANDBOX_READY', network: { ip: web.ip() } });
    for (const pod of [web, client]) await pod.remove();
    await expect.poll(shown).toEqual(before);
  });

  it('loses nothing when it is killed in the middle of an ADD and of a DEL', async () => {
    const before = shown();
    const [web, client] = [await runPod(containerd, 'web'), await runPod(containerd, 'client')];
    await web.serve({ port: 8080 });

    let release = await holdRecords(containerd);
    const portMappings = [{ hostPort: 8080, containerPort: 80 }];
    const late = Promise.allSettled([runPod(containerd, 'late', { portMappings })]);
    await expect.poll(() => isRequestHeld(containerd)).toBe(true);
    await containerd.kill();
    expect(await late).toMatchObject([{ status: 'rejected' }]);
    await start();
    // The plugin of before is still at it.
    const removed = removeAllPods(containerd, [web, client]);
    release();
    await removed;
    await expect.poll(() => reservationsOf(containerd.enclosure)).toEqual([...web.ips, ...client.ips].sort());
    expect(await client.connect({ ip: web.ip(), port: 8080 })).toMatchObject({ kind: 'answered', by: 'web' });

    release = await holdRecords(containerd);
    const stopped = Promise.allSettled([client.stop()]);
    await expect.poll(() => isRequestHeld(containerd)).toBe(true);
    await containerd.kill();
    expect(await stopped).toMatchObject([{ status: 'rejected' }]);
    await start();
    const again = removeAllPods(containerd, [web]);
    release();
    await again;
    await expect.poll(() => reservationsOf(containerd.enclosure)).toEqual([...web.ips].sort());
    expect(await node.connect({ ip: web.ip(), port: 8080 })).toMatchObject({ kind: 'answered', by: 'web' });
    await web.remove();
    await expect.poll(shown).toEqual(before);
  });

  it('lets the kubelet stop a pod twice', async () => {
    const pod = await runPod(containerd, 'web');
    await pod.stop();
    await pod.stop();
    await pod.remove();
    expect(reservationsOf(containerd.enclosure)).toEqual([]);
  });

  describe('after a reboot', () => {
    /** Links, routes and rules do not outlive the kernel. */
    const reboot = async () => {
      await containerd.enclosure.reboot();
      node.namespace.run('ip', 'link', 'delete', 'cni0');
      node.namespace.run('nft', 'flush', 'ruleset');
      await containerd.start();
      await served.resume();
      await containerd.networkReady();
    };

    it('gives the addresses back of pods that the kubelet removes afterwards', async () => {
      const [web, client] = [await runPod(containerd, 'web'), await runPod(containerd, 'client')];
      await reboot();
      for (const pod of [web, client]) {
        expect(await pod.status()).toMatchObject({ state: 'SANDBOX_NOTREADY' });
        await pod.remove();
      }
      expect(reservationsOf(containerd.enclosure)).toEqual([]);
    });

    it('gives the addresses back of pods that nobody removes, and keeps those of new pods', async () => {
      const old = [await runPod(containerd, 'old-1'), await runPod(containerd, 'old-2')];
      await reboot();
      const pod = await runPod(containerd, 'new');
      expect(reservationsOf(containerd.enclosure)).toEqual([...pod.ips].sort());
      // The kubelet remembers late.
      for (const { remove } of old) await remove();
      expect(reservationsOf(containerd.enclosure)).toEqual([...pod.ips].sort());
      expect(await node.connect({ ip: pod.ip(), port: 9 })).toMatchObject({ kind: 'refused' });
      await pod.remove();
      expect(reservationsOf(containerd.enclosure)).toEqual([]);
    });
  });
});
