import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ApiObject, apiNode, FakeApiServer } from '../../test/fakes/api-server/index.ts';
import { eventually } from '../../test/fakes/api-source-fixture.ts';
import { type ApiClient, ApiSource, createApiClient, NODES, POD_CIDR_BLOCKS } from '../kube/index.ts';
import { nodeHash } from './block-name.ts';
import type { PoolProblem } from './decide/index.ts';
import { parsePools } from './pool.ts';
import { PoolRunner } from './pool-runner.ts';

const POOLS = parsePools([
  { cidr: '10.244.0.0/25', blockSize: 26 },
  { cidr: 'fd00:10::/120', blockSize: 122 },
]);

/** A node's runner, fed by a real source over HTTP. */
class Node {
  readonly name: string;
  readonly used = new Map<string, number>();
  problems: readonly PoolProblem[] = [];
  changes = 0;
  readonly #source: ApiSource;
  readonly runner: PoolRunner;

  constructor(name: string, client: ApiClient) {
    this.name = name;
    const use = (cidr: string) => ({ used: this.used.get(cidr) ?? 0, free: 61 - (this.used.get(cidr) ?? 0) });
    this.runner = new PoolRunner({ client, node: name, pools: POOLS, use });
    const resources = [{ ...NODES, essential: true }, POD_CIDR_BLOCKS];
    this.#source = new ApiSource({ client, resources, random: () => 0 });
  }

  async start(): Promise<this> {
    this.runner.start({
      changed: () => this.changes++,
      problems: (problems) => {
        this.problems = problems;
      },
    });
    await this.#source.start({
      event: (event) => this.runner.event(event),
      synced: () => this.runner.synced(),
      problems: () => {},
    });
    return this;
  }

  async stop(): Promise<void> {
    await this.#source.stop();
    await this.runner.stop();
  }
}

describe('a runner, over HTTP,', () => {
  const folder = mkdtempSync(join(tmpdir(), 'nodeplane-pools-'));
  const nodes: Node[] = [];
  let server: FakeApiServer;
  let client: ApiClient;

  beforeEach(async () => {
    server = new FakeApiServer();
    await server.start();
    server.writeKubeconfig(join(folder, 'kubeconfig'));
    client = await createApiClient({ kubeconfig: join(folder, 'kubeconfig'), userAgent: 'test' });
    server.apply(apiNode('node-1'), apiNode('node-2'), apiNode('node-3'));
    // The first one makes a certificate.
  }, 60_000);

  afterEach(async () => {
    await Promise.all(nodes.splice(0).map((node) => node.stop()));
    client.close();
    await server.stop();
    rmSync(join(folder, 'kubeconfig'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  async function start(name: string): Promise<Node> {
    const node = new Node(name, client);
    nodes.push(node);
    return await node.start();
  }

  const blocks = () => server.objects('PodCIDRBlock') as readonly (ApiObject & { readonly spec: Spec })[];
  const blockOf = (cidr: string) => blocks().find(({ spec }) => spec.cidr === cidr);
  const familiesOf = ({ runner }: Node) => runner.blocks().map((cidr) => (cidr.includes(':') ? 6 : 4));

  it('claims a block of each family, and confirms it', async () => {
    const node = await start('node-1');
    await eventually(() => expect(familiesOf(node)).toEqual([4, 6]));
    const [cidr] = node.runner.blocks();
    const uid = server.objects('Node').find(({ metadata }) => metadata.name === 'node-1')?.metadata.uid;
    expect(blockOf(cidr!)).toMatchObject({
      metadata: { name: cidr!.replace(/[.:/]/g, '-'), labels: { 'nodeplane.io/node-hash': nodeHash('node-1') } },
      spec: { pool: '10.244.0.0/25', node: 'node-1', nodeUID: uid, state: 'confirmed' },
    });
    expect(node.problems).toEqual([]);
    expect(node.changes).toBeGreaterThan(0);
  });

  it('gives each node other ranges, and tells the one that comes too late what is full', async () => {
    const first = await start('node-1');
    const second = await start('node-2');
    await eventually(() =>
      expect([familiesOf(first), familiesOf(second)]).toEqual([
        [4, 6],
        [4, 6],
      ]),
    );
    const third = await start('node-3');
    await eventually(() => expect(third.problems).toMatchObject([{ code: 'ERR_POOL_EXHAUSTED' }]));
    expect(third.problems[0]?.message).toMatch(
      /^No IPv4 block of pod addresses is free for node "node-3" in 10\.244\.0\.0\/25 \(2 blocks of \/26\): [23] nodes have blocks/,
    );
    await eventually(() => expect(new Set(nodes.flatMap(({ runner }) => runner.blocks())).size).toBe(5));
  });

  it('lets three nodes that start at once have what there is, each range once', async () => {
    const all = await Promise.all(['node-1', 'node-2', 'node-3'].map(start));
    // Two IPv4 blocks, and IPv6 blocks for all.
    await eventually(() => {
      const taken = all.flatMap(({ runner }) => runner.blocks());
      expect(taken).toHaveLength(5);
      expect(new Set(taken).size).toBe(5);
    });
    const without = all.filter((node) => !familiesOf(node).includes(4));
    expect(without).toHaveLength(1);
    await eventually(() => expect(without[0]!.problems).toMatchObject([{ code: 'ERR_POOL_EXHAUSTED' }]));
    for (const { spec } of blocks()) expect(spec.state).toBe('confirmed');
  });

  it('takes another block when the last one is used to 80 %', async () => {
    const node = await start('node-1');
    await eventually(() => expect(familiesOf(node)).toEqual([4, 6]));
    const [cidr] = node.runner.blocks();
    node.used.set(cidr!, 49);
    node.runner.useChanged();
    await eventually(() => expect(familiesOf(node)).toEqual([4, 4, 6]));
  });

  it('takes its blocks up again after a crash, and the process before gives none any more', async () => {
    const before = await start('node-1');
    await eventually(() => expect(familiesOf(before)).toEqual([4, 6]));
    const had = before.runner.blocks();
    const after = await start('node-1');
    await eventually(() => expect(after.runner.blocks()).toEqual(had));
    await eventually(() => expect(before.runner.blocks()).toEqual([]));
    expect(before.problems[0]?.message).toContain('Another agent on node "node-1" has taken over');
    expect(blocks()).toHaveLength(2);
  });

  it('finishes a claim whose answer was lost', async () => {
    server.misbehave.lostAnswers = 3;
    const node = await start('node-1');
    await eventually(() => expect(familiesOf(node)).toEqual(expect.arrayContaining([4, 6])));
    for (const { spec } of blocks()) expect(spec).toMatchObject({ node: 'node-1', state: 'confirmed' });
  });

  it('says what is missing: permissions, or the kind itself', async () => {
    server.misbehave.rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] }];
    const node = await start('node-1');
    const told = (text: string) => eventually(() => expect(node.problems.map((p) => p.message).join()).toContain(text));
    await told('this needs the RBAC verb "create" on resource "podcidrblocks" of API group "nodeplane.io"');
    server.misbehave.missingGroups.add('nodeplane.io');
    await told('install them with "kubectl apply -f deploy/crds/podcidrblocks.yaml"');
    server.misbehave.missingGroups.clear();
    server.misbehave.rules = undefined;
    await eventually(() => expect(familiesOf(node)).toEqual([4, 6]));
    await eventually(() => expect(node.problems).toEqual([]));
  });
});

interface Spec {
  readonly cidr: string;
  readonly node: string;
  readonly state: string;
}
