import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Agent, createLab, removeAll } from '../lab/lab.ts';
import { type Containerd, startContainerd } from './containerd.ts';
import { eightAtATime, persistently, removeAllPods, runPodPersistently } from './kubelet.ts';
import { serveByAgent, startCniAgent } from './plugins.ts';
import { runPod } from './pod.ts';
import { reservationsOf, tracesOf } from './traces.ts';

// The agent gives containerd its plugin and its configuration, and both are killed at bad moments.

const lab = createLab();
const node = lab.addNode({ name: 'node-1' });
const outside = lab.addClient('outside');
const SETTINGS = {
  portMappings: [{ hostPort: 8080, containerPort: 80 }],
  annotations: { 'kubernetes.io/ingress-bandwidth': '10M', 'kubernetes.io/egress-bandwidth': '20M' },
};
let containerd: Containerd;
let agent: Agent;
beforeAll(async () => {
  containerd = await startContainerd(node);
  agent = await serveByAgent(containerd, node);
  await (await runPod(containerd, 'first', SETTINGS)).remove();
});
afterEach(() => removeAllPods(containerd));
afterAll(removeAll);

const restart = async () => {
  agent = await startCniAgent(containerd, node);
};
const traces = () => tracesOf(node, containerd.enclosure);

it('serves hostPorts and bandwidth with the configuration it installs', async () => {
  const before = traces();
  const web = await runPod(containerd, 'web', SETTINGS);
  await web.serve({ port: 80 });
  for (const family of ['IPv4', 'IPv6'] as const) {
    const outcome = await outside.connect({ ip: node.ip(family), port: 8080 });
    expect(outcome).toMatchObject({ kind: 'answered', by: 'web', source: outside.ip(family) });
  }
  expect(node.namespace.run('tc', 'qdisc', 'show')).toMatch(/qdisc tbf .* rate 10Mbit /);
  await web.remove();
  await expect.poll(traces).toEqual(before);
});

it('leaves pods working while it is dead, new ones fail with the reason, and the next agent settles removed ones', async () => {
  const before = traces();
  const [web, client] = [await runPod(containerd, 'web'), await runPod(containerd, 'client')];
  await web.serve({ port: 8080 });
  await agent.kill();
  for (const ip of web.ips) {
    expect(await client.connect({ ip, port: 8080 })).toMatchObject({ kind: 'answered', by: 'web' });
  }
  await expect(runPod(containerd, 'late')).rejects.toThrow('The nodeplane agent is not running on this node');
  for (const pod of [web, client]) await pod.remove();
  expect(reservationsOf(containerd.enclosure)).toEqual([...web.ips, ...client.ips].sort());
  await restart();
  await expect.poll(() => reservationsOf(containerd.enclosure)).toEqual([]);
  await removeAllPods(containerd);
  await expect.poll(traces).toEqual(before);
  expect(readdirSync(join(containerd.enclosure.folder, 'var-lib/nodeplane/cni/spool'))).toEqual([]);
});

it('loses no address and no link when it is killed again and again while pods come and go', async () => {
  const before = traces();
  let busy = true;
  const kills = (async () => {
    for (let kill = 0; kill < 3 && busy; kill++) {
      await agent.kill();
      await restart();
    }
  })();
  const names = Array.from({ length: 16 }, (_, index) => `pod-${index}`);
  const pods = await eightAtATime(names.map((name) => () => runPodPersistently(containerd, name)));
  const addresses = pods.flatMap(({ ips }) => ips);
  expect(new Set(addresses).size).toBe(32);
  await eightAtATime(pods.slice(0, 8).map((pod) => () => pod.remove()));
  busy = false;
  await kills;
  const kept = pods.slice(8).flatMap(({ ips }) => ips);
  await expect.poll(() => reservationsOf(containerd.enclosure)).toEqual([...kept].sort());
  const outcomes = await Promise.all(kept.map((ip) => node.connect({ ip, port: 9 })));
  expect(outcomes.map(({ kind }) => kind)).toEqual(kept.map(() => 'refused'));
  await removeAllPods(containerd);
  await expect.poll(traces).toEqual(before);
});

it('loses no address, link or rule when containerd is killed again and again while pods come and go', async () => {
  // Not looked at are the namespaces, shims and cgroups that containerd itself loses.
  const ofPlugin = () => traces().filter((trace) => /^(link|route|shaping|rule) |^file .*\/var-lib\//.test(trace));
  const before = ofPlugin();
  const whileKilled = async (work: Promise<unknown>) => {
    let busy = true;
    const done = work.finally(() => {
      busy = false;
    });
    for (let kill = 0; kill < 2 && busy; kill++) {
      await containerd.kill();
      await containerd.start();
      await containerd.networkReady();
    }
    await done;
  };
  const names = Array.from({ length: 8 }, (_, index) => `pod-${index}`);
  await whileKilled(eightAtATime(names.map((name) => () => runPodPersistently(containerd, name))));
  await whileKilled(persistently(() => removeAllPods(containerd)));
  await expect.poll(ofPlugin).toEqual(before);
});
