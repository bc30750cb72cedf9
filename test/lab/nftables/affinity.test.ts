import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseIp } from '../../../src/core/index.ts';
import { type NftElement, type NftRuleset, nftFamily } from '../../../src/netlink/nftables/index.ts';
import type { Plan, ServicePortPlan } from '../../../src/proxy/index.ts';
import type { NftablesDataplane } from '../../../src/proxy/nftables/index.ts';
import { sampleNode, samplePlan, samplePort } from '../../samples/sample-plan.ts';
import { createLab, type LabNode, type Pod, removeAll, tally } from '../lab.ts';
import { dataplaneIn, endpointOf, FAMILIES, openIn } from './fixtures.ts';

afterAll(removeAll);

describe.each(FAMILIES)('%s: ClientIP affinity', (family) => {
  let node: LabNode;
  let web: Pod[];
  let client: Pod;
  let nft: NftRuleset;
  let dataplane: NftablesDataplane;
  const ports = new Map<string, ServicePortPlan>();
  const plan: Plan = { ...samplePlan(family, sampleNode(), []), ports };
  const vip = family === 'IPv4' ? '10.96.1.1' : 'fd00:96::1';

  beforeAll(async () => {
    const lab = createLab();
    node = lab.addNode({ name: 'node-1' });
    web = ['web-1', 'web-2', 'web-3', 'web-4', 'web-5'].map((name) => node.addPod(name));
    client = node.addPod('client');
    for (const pod of web) await pod.serve({ port: 8080 });
    nft = openIn(node.namespace);
    dataplane = dataplaneIn(node.namespace, family);
    await dataplane.resync(plan);
  });

  const endpoint = (pod: Pod) => endpointOf(pod, family);
  const set = (pods: readonly Pod[], affinitySeconds: number) => {
    const port = samplePort({ name: 'shop/sticky:http', clusterIp: vip, affinitySeconds, local: pods.map(endpoint) });
    ports.set(port.key, port);
    return dataplane.sync(plan, { upserted: [port], removed: [] });
  };
  /** Who answers, the same each time. */
  const who = async (from: Pod = client) => {
    await from.connect({ ip: vip, port: 80 });
    const { answers, failures } = tally(await from.connectMany({ ip: vip, port: 80 }, 20));
    expect(failures).toEqual({});
    expect(Object.keys(answers)).toHaveLength(1);
    return web.find(({ name }) => name === Object.keys(answers)[0])!;
  };
  const map = {
    kind: 'set',
    family: nftFamily(family),
    table: 'nodeplane',
    name: 'affinity-shop/sticky/tcp/http',
  } as const;
  const remembered = (): NftElement[] => nft.listElements(map);

  it('lasts while the endpoint does, whatever else comes and goes', async () => {
    await set(web.slice(0, 3), 600);
    const mine = await who();
    expect(remembered()).toHaveLength(1);
    await set(web, 600);
    expect(await who()).toBe(mine);
    await set([mine, web[4]!], 600);
    expect(await who()).toBe(mine);
    expect((await dataplane.resync(plan)).objects.elements!.written).toBe(0);
    expect(await who()).toBe(mine);
  });

  it('ends at once when the endpoint goes', async () => {
    const mine = await who();
    const others = web.filter((pod) => pod !== mine);
    await set(others, 600);
    expect(remembered()).toEqual([]);
    expect(others).toContain(await who());
  });

  it('outlives a restart, during which endpoints went', async () => {
    const mine = await who();
    const other = web.find((pod) => pod !== mine)!;
    await other.connect({ ip: vip, port: 80 });
    dataplane.close();
    dataplane = dataplaneIn(node.namespace, family);
    const port = samplePort({
      name: 'shop/sticky:http',
      clusterIp: vip,
      affinitySeconds: 600,
      local: [mine, other].map(endpoint),
    });
    ports.set(port.key, port);
    await dataplane.resync(plan);
    const values = remembered().map(({ data }) => Buffer.from(data!).toString('hex'));
    const valid = [mine, other].map((pod) => values.filter((value) => value.startsWith(hexOf(pod.ip(family)))).length);
    expect(valid[0]! + valid[1]!).toBe(values.length);
    expect(await who()).toBe(mine);
  });

  it('takes a new timeout at once, and keeps who was seen within it', async () => {
    const mine = await who();
    await set(web, 30);
    expect(await dataplane.verify()).toEqual([]);
    const [client] = remembered().filter(({ data }) =>
      Buffer.from(data!)
        .toString('hex')
        .startsWith(hexOf(mine.ip(family))),
    );
    expect(client!.expirationMs).toBeGreaterThan(0);
    expect(client!.expirationMs).toBeLessThanOrEqual(30_000);
    expect(await who()).toBe(mine);
    await set(web, 1200);
    expect(await who()).toBe(mine);
    await set(web, 1);
    await expect.poll(remembered, { timeout: 10_000 }).toEqual([]);
  });

  it('is gone as soon as it is switched off, and there as soon as it is switched on', async () => {
    await set(web, 0);
    const { answers } = tally(await client.connectMany({ ip: vip, port: 80 }, 100));
    expect(Object.keys(answers)).toHaveLength(web.length);
    expect(
      nft
        .listSets({ kind: 'table', family: map.family, name: 'nodeplane' })
        .some(({ name }) => name.includes('sticky')),
    ).toBe(false);
    await set(web, 600);
    await who();
    expect(await dataplane.verify()).toEqual([]);
  });

  it('outlives a table of another shape', async () => {
    const mine = await who();
    node.namespace.run('nft', `delete chain ${map.family} nodeplane filter-prerouting`);
    node.namespace.run(
      'nft',
      `add chain ${map.family} nodeplane filter-prerouting { type filter hook prerouting priority 7; }`,
    );
    await dataplane.resync(plan);
    expect(await dataplane.verify()).toEqual([]);
    expect(await who()).toBe(mine);
  });

  it('balances without it when no more clients can be remembered', async () => {
    await set(web.slice(0, 3), 0);
    await set(web.slice(0, 3), 600);
    // As if the map were full: nothing can be put into it.
    const listing = node.namespace.run(
      'nft',
      '-a',
      'list',
      'chain',
      map.family,
      'nodeplane',
      'sticky-shop/sticky/tcp/http',
    );
    for (const [, handle] of listing.matchAll(/update .*# handle (\d+)/g)) {
      node.namespace.run(
        'nft',
        'delete',
        'rule',
        map.family,
        'nodeplane',
        'sticky-shop/sticky/tcp/http',
        'handle',
        handle!,
      );
    }
    const { answers, failures } = tally(await client.connectMany({ ip: vip, port: 80 }, 60));
    expect(failures).toEqual({});
    // The first half of the slots.
    expect(Object.keys(answers)).toHaveLength(2);
  });
});

function hexOf(ip: string): string {
  return Buffer.from(parseIp(ip).bytes).toString('hex');
}
