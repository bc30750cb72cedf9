import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IpFamily } from '../../../src/core/index.ts';
import { makeService, makeSlice } from '../../fakes/service-objects.ts';
import { type Flow, type LabNode, type Pod, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { type Cluster, createCluster, FAMILIES, POD_PORT, wayTo } from './cluster.ts';

// What restarts of the agents and changes of --routes do to connections that are under way.

const SERVICE = { IPv4: '10.96.0.1', IPv6: 'fd00:10:96::1' } as const satisfies Record<IpFamily, string>;
const PORT = 80;
/** Datagrams of each flow. */
const PER_SECOND = 100;
/** Of a test: on a quiet machine two agents start again in 2 s. */
const LIMIT_MS = patient(300_000);
/** Of a connection that is to succeed. */
const ANSWER = { timeoutMs: 20_000 };
/** So many answers show that a flow is under way. */
const UNDER_WAY = 20;

let cluster: Cluster;
let [one, two]: LabNode[] = [];
let [pod1, pod2, pod3]: Pod[] = [];

beforeAll(async () => {
  cluster = await createCluster();
  [one, two] = cluster.nodes;
  [pod1, pod2, pod3] = cluster.pods;
  const clusterIPs = FAMILIES.map((family) => SERVICE[family]);
  const protocols = (['TCP', 'UDP'] as const).map((protocol) => ({ name: protocol.toLowerCase(), protocol }));
  const ports = protocols.map((port) => ({ ...port, port: PORT, targetPort: POD_PORT }));
  cluster.objects.put(
    makeService('default/web', { clusterIP: clusterIPs[0]!, clusterIPs, ipFamilies: FAMILIES, ports }),
  );
  for (const family of FAMILIES) {
    const slicePorts = protocols.map((port) => ({ ...port, port: POD_PORT }));
    cluster.objects.put(makeSlice('default/web', [pod2!.ip(family)], { addressType: family, ports: slicePorts }));
  }
  await cluster.start('--routes', 'auto');
});
afterAll(async () => {
  await cluster.stop();
  removeAll();
});

interface NamedFlow extends Flow {
  readonly name: string;
}

/** Flows from pod-1 in both families, once all of them are answered. */
async function startFlows(servers: Readonly<Record<string, (family: IpFamily) => string>>): Promise<NamedFlow[]> {
  const flows: NamedFlow[] = [];
  for (const [name, addressOf] of Object.entries(servers)) {
    for (const family of FAMILIES) {
      const target = { ip: addressOf(family), port: name === 'Service' ? PORT : POD_PORT };
      const answers = async () => (await pod1!.connect({ ...target, protocol: 'UDP' }, { timeoutMs: 1000 })).kind;
      await expect.poll(answers).toBe('answered');
      flows.push({ name: `${name}, ${family}`, ...(await pod1!.startFlow(target, { perSecond: PER_SECOND })) });
    }
  }
  await untilAnswered(flows);
  return flows;
}

/** Waits until each flow has been answered for a while from now on. */
async function untilAnswered(flows: readonly Flow[]): Promise<void> {
  for (const flow of flows) {
    const { answered } = await flow.report();
    await expect.poll(async () => (await flow.report()).answered).toBeGreaterThan(answered + UNDER_WAY);
  }
}

/** What came of each flow: how many datagrams were lost, and the longest time without an answer. */
async function stopFlows(flows: readonly NamedFlow[]) {
  return await Promise.all(
    flows.map(async ({ name, stop }) => {
      const { sent, answered, longestSilenceMs } = await stop();
      return { name, lost: sent - answered, longestSilenceMs };
    }),
  );
}

/** Waits until the nodes on the link have no VXLAN device. As long as they have one, rules say who may use it. */
async function tunnelsAreGone(): Promise<void> {
  const remains = () =>
    [one!, two!].map(({ namespace }) => {
      const rules = namespace.run('nft', 'list', 'table', 'inet', 'nodeplane-routes');
      const hasTunnel = namespace.run('ip', '-o', 'link', 'show', 'type', 'vxlan') !== '';
      if (hasTunnel) expect(rules).toContain('chain tunnel-input');
      return hasTunnel || rules.includes('chain tunnel-input');
    });
  while (remains().includes(true)) await delay(200);
}

const toPod2 = (family: IpFamily) => pod2!.ip(family);
const toPod3 = (family: IpFamily) => pod3!.ip(family);
const toService = (family: IpFamily) => SERVICE[family];

it.each(['SIGTERM', 'SIGKILL'] as const)(
  'no packet is lost when all agents are ended by %s and start again',
  async (by) => {
    const flows = await startFlows({ 'on the link': toPod2, 'through the tunnel': toPod3, Service: toService });
    const held = await Promise.all(FAMILIES.map((family) => pod1!.hold({ ip: SERVICE[family], port: PORT }, ANSWER)));
    await Promise.all(cluster.nodes.map((node) => cluster.restart(node, { by, flags: ['--routes', 'auto'] })));
    await untilAnswered(flows);
    for (const connection of held)
      expect(await connection.echo(ANSWER)).toMatchObject({ kind: 'answered', by: 'pod-2' });
    await Promise.all(held.map((connection) => connection.close()));
    for (const { name, lost } of await stopFlows(flows)) expect([name, lost]).toEqual([name, 0]);
  },
  LIMIT_MS,
);

describe('a change of --routes', () => {
  // In this order: each begins with what the one before has left. Nodes with auto reach those with either of the others, and those
  // that change at once go on receiving the other way for a while (change-over.ts). Nothing is lost but what is on its way at
  // the moment that IPv6 needs to exchange a route (diff.ts).
  it.each([
    { mode: 'vxlan', before: 'auto', how: 'node after node', device: 'nodeplane' },
    { mode: 'auto', before: 'vxlan', how: 'node after node', device: 'eth0' },
    { mode: 'host-gw', before: 'auto', how: 'node after node', device: 'eth0' },
    { mode: 'vxlan', before: 'host-gw', how: 'at once', device: 'nodeplane' },
    { mode: 'host-gw', before: 'vxlan', how: 'at once', device: 'eth0' },
    { mode: 'auto', before: 'host-gw', how: 'node after node', device: 'eth0' },
  ])('from $before to $mode, $how: connections go on', { timeout: LIMIT_MS }, async ({ mode, before, how, device }) => {
    if (before === 'host-gw') await tunnelsAreGone();
    const flows = await startFlows({ pod: toPod2, Service: toService });
    const held = await Promise.all(FAMILIES.map((family) => pod1!.hold({ ip: SERVICE[family], port: PORT }, ANSWER)));
    const restart = (node: LabNode) => cluster.restart(node, { by: 'SIGTERM', flags: ['--routes', mode] });
    if (how === 'at once') await Promise.all([one!, two!].map(restart));
    else for (const node of [one!, two!]) await restart(node);
    for (const family of FAMILIES) await expect.poll(() => wayTo(one!, pod2!, family)).toContain(device);
    // Removed while packets flow: it was kept for others that send by it.
    if (mode === 'host-gw') await tunnelsAreGone();
    await untilAnswered(flows);
    for (const connection of held) {
      expect(await connection.echo(ANSWER)).toMatchObject({ kind: 'answered', by: 'pod-2' });
      await connection.close();
    }
    process.stdout.write(`--routes ${before} to ${mode}, ${how}:\n`);
    for (const { name, lost, longestSilenceMs } of await stopFlows(flows)) {
      expect(lost, name).toBeLessThan(PER_SECOND / 10);
      process.stdout.write(`  ${name}: ${lost} datagrams lost, at most ${longestSilenceMs} ms without an answer\n`);
    }
  });
});
