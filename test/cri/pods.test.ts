import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createLab, removeAll } from '../lab/lab.ts';
import { checkCached } from './cached-attachment.ts';
import { type Containerd, startContainerd } from './containerd.ts';
import { eightAtATime } from './kubelet.ts';
import { WAYS_TO_SERVE } from './plugins.ts';
import { type CriPod, runPod } from './pod.ts';
import { reservationsOf, tracesOf } from './traces.ts';

// Debian's containerd runs the plugin, and a kubelet's calls run containerd.

/** The plugin alone is a Node.js program that is started four times for each pod: fewer pods show what is to be seen. */
const POD_COUNTS: Readonly<Record<string, number>> = { 'the plugin alone': 16, 'the agent': 60 };

afterAll(removeAll);

describe.each(WAYS_TO_SERVE)('with %s, containerd', (way, serve) => {
  const podCount = POD_COUNTS[way]!;
  const lab = createLab();
  const node = lab.addNode({ name: 'node-1' });
  let containerd: Containerd;
  beforeAll(async () => {
    containerd = await startContainerd(node);
  });

  it('is ready once plugin and network configuration are there, and not before', async () => {
    expect(await containerd.condition('RuntimeReady')).toMatchObject({ status: true });
    expect(await containerd.condition('NetworkReady')).toMatchObject({
      status: false,
      reason: 'NetworkPluginNotReady',
    });
    await serve(containerd, node);
    expect(await containerd.condition('NetworkReady')).toMatchObject({ status: true });
  });

  describe('a pod', () => {
    let web: CriPod;
    let client: CriPod;
    beforeAll(async () => {
      web = await runPod(containerd, 'web');
      client = await runPod(containerd, 'client');
      await web.serve({ port: 8080 });
      await client.serve({ port: 8080 });
      await node.serve({ port: 8080 });
    });
    afterAll(async () => {
      for (const pod of [web, client]) await pod.remove();
    });

    it('has an address of each family, the first one of the node’s first pod CIDR', () => {
      expect(web.ips).toEqual([expect.stringMatching(/^10\.244\.1\./), expect.stringMatching(/^fd00:10:244:1::/)]);
      expect(reservationsOf(containerd.enclosure)).toEqual(expect.arrayContaining([...web.ips, ...client.ips]));
    });

    it.each(['IPv4', 'IPv6'] as const)('reaches pods and its node and is reached by them with %s', async (family) => {
      const [here, there, host] = [web.ip(family), client.ip(family), node.ip(family)];
      const answered = (by: string, source: string) => ({ kind: 'answered', by, source });
      expect(await client.connect({ ip: here, port: 8080 })).toMatchObject(answered('web', there));
      expect(await web.connect({ ip: there, port: 8080 })).toMatchObject(answered('client', here));
      expect(await node.connect({ ip: here, port: 8080 })).toMatchObject(answered('web', expect.any(String)));
      expect(await web.connect({ ip: host, port: 8080 })).toMatchObject(answered('node-1', here));
    });

    it('passes CHECK with the result that containerd keeps, until it is not as it was made', async () => {
      const pod = await runPod(containerd, 'checked', { portMappings: [{ hostPort: 8080, containerPort: 80 }] });
      onTestFinished(pod.remove);
      expect(checkCached(containerd, pod)).toBeUndefined();
      pod.namespace.run('ip', 'address', 'delete', `${pod.ip()}/24`, 'dev', 'eth0');
      expect(checkCached(containerd, pod)).toContain(`"eth0" lacks the address ${pod.ip()}/24`);
    });

    it('serves its containers, which share the interface', async () => {
      const server = await web.startContainer('httpd', ['/bin/busybox', 'httpd', '-f', '-p', '80', '-h', '/etc']);
      const shell = await client.startContainer('shell', ['/bin/busybox', 'sleep', '1000000']);
      for (const url of [`http://${web.ip()}/hostname`, `http://[${web.ip('IPv6')}]/hostname`]) {
        const fetched = () => shell.exec('/bin/busybox', 'wget', '-q', '-O', '-', url).catch(String);
        await expect.poll(fetched).toBe('web\n');
      }
      expect(await server.exec('/bin/busybox', 'ip', 'route')).toContain('default via 10.244.1.1 dev eth0');
    });
  });

  it(`runs ${podCount} pods, 8 at a time, each with addresses of its own, and nothing of them is left afterwards`, async () => {
    await (await runPod(containerd, 'first')).remove();
    const before = tracesOf(node, containerd.enclosure);
    const pods = await eightAtATime(
      Array.from({ length: podCount }, (_, index) => () => runPod(containerd, `pod-${index}`)),
    );
    const addresses = pods.flatMap(({ ips }) => ips);
    expect(new Set(addresses).size).toBe(2 * podCount);
    expect(reservationsOf(containerd.enclosure)).toEqual([...addresses].sort());
    // Nothing listens there: a refusal comes from the pod itself.
    const outcomes = await Promise.all(addresses.map((ip) => node.connect({ ip, port: 9 })));
    expect(outcomes.map(({ kind }) => kind)).toEqual(addresses.map(() => 'refused'));
    await eightAtATime(pods.map((pod) => () => pod.remove()));
    await expect.poll(() => tracesOf(node, containerd.enclosure)).toEqual(before);
  });
});
