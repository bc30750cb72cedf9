import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { KubeObject, SliceEndpoint } from '../../../src/kube/index.ts';
import { manifestOf, nodeObject, saveManifest } from '../../samples/manifests.ts';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers } from './faults.ts';

// What the kernel does goes on while the agent does not know it, or knows better.

const [WEB, GOING, NODE_PORT] = ['10.96.0.10', '10.96.0.11', 30080];
useOwnLockFile();
const world = new ExplainWorld();
const { node, other, web, web2, client, outside } = world;
const objects = (of: SliceEndpoint[], going: SliceEndpoint[]) => [
  ...served('shop/web', WEB, of, { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] }),
  ...served('shop/going', GOING, going),
];
const save = (own: KubeObject, ...more: KubeObject[]) =>
  saveManifest(world.manifests, 'all.yaml', manifestOf(own, nodeObject(other), ...more));

beforeAll(async () => {
  await node.serve({ port: TARGET });
  await world.prepare(objects([on(node, web.ip())], [on(node, web.ip())]));
}, 300_000);
afterEach(() => world.end());
afterAll(removeAll);

it('an agent that finds no API server when it starts: what the one before has written serves', async () => {
  await world.startAgent();
  await world.end();
  const unreachable = ['--master', 'http://192.168.50.99:6443', '--proxy-mode', 'nftables'];
  world.agent = await node.startAgent({ until: 'live', flags: [...unreachable, '--cluster-cidr', '10.244.0.0/16'] });
  const cases: readonly (readonly [Host, string, number, works: boolean])[] = [
    [client, WEB, 80, true],
    [outside, node.ip(), NODE_PORT, true],
    [client, web.ip(), TARGET, true],
    [outside, node.ip(), TARGET, true],
    [outside, node.ip(), 9999, false],
    [client, web.ip(), 9999, false],
  ];
  for (const [from, ip, port, works] of cases) {
    const answer = await world.ask(`${ip}:${port}`, from.ip());
    expect(answer.verdict, answer.cause).toBe(works ? 'works' : 'fails');
    expect(answer.warnings.map(({ code }) => code)).toContain('agent-not-ready');
    expect(await answers(from, ip, port), `${ip}:${port}`).toBe(works);
  }
  const cause = expect.stringContaining('the agent serves no Services yet');
  for (const named of ['svc/shop/web', WEB])
    expect(await world.ask(named, client.ip())).toMatchObject({ verdict: 'unknown', cause });
});

it('a change that is not written yet: whether the endpoint that was answers is not known', async () => {
  save(nodeObject(node), ...objects([on(node, web.ip())], [on(node, web.ip())]));
  await world.startAgent('--proxy-mode', 'iptables', '--iptables-variant', 'nft', '--iptables-min-sync-period', '25s');
  // The first change is written at once, the next one 25 s later.
  save(nodeObject(node), ...objects([on(node, web.ip())], [on(node, web2.ip())]));
  await world.settle();
  save(nodeObject(node), ...objects([on(node, web2.ip())], []));
  await delay(4000);
  for (const ip of [WEB, GOING]) {
    const answer = await world.ask(ip, client.ip());
    const cause = expect.stringMatching(/which the plan does not have: whether it answers is not known/);
    expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause });
    expect(await answers(client, ip)).toBe(true);
  }
});

it('of the addresses of a node one is asked for that it has', async () => {
  const elsewhere = { type: 'ExternalIP', address: '203.0.113.99' };
  const own = nodeObject(node);
  const addresses = [elsewhere, ...(own.status?.addresses ?? [])];
  save({ ...own, status: { ...own.status, addresses } }, ...objects([on(node, web.ip())], []));
  await world.startAgent();
  for (const port of [NODE_PORT, TARGET]) {
    const answer = await world.ask(`node:${port}`, outside.ip());
    expect(answer, answer.cause).toMatchObject({ verdict: 'works' });
    expect(await answers(outside, node.ip(), port)).toBe(true);
  }
});
