import { afterAll, describe, expect, it } from 'vitest';
import { nftFamily } from '../../../src/netlink/nftables/index.ts';
import type { NftablesDataplaneOptions } from '../../../src/proxy/nftables/index.ts';
import { completePlan } from '../../samples/complete-plan.ts';
import { snapshot } from '../../samples/ruleset-snapshot.ts';
import { samplePort } from '../../samples/sample-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { dataplaneIn, FAMILIES, openIn } from './fixtures.ts';

afterAll(removeAll);

const OTHERWISE =
  'add chain TABLE nat-output { type nat hook output priority 7; }; add rule TABLE nat-output jump services';

/** A dataplane that is synced again when it hears of others, as the proxy does it. */
async function setup(family: (typeof FAMILIES)[number], options: Partial<NftablesDataplaneOptions> = {}) {
  const namespace = createNamespace(`repair-${family}`);
  const ports = new Map(completePlan(family).ports);
  const plan = { ...completePlan(family), ports };
  let heard = 0;
  const dataplane = dataplaneIn(namespace, family, {
    debounceMs: 1,
    onForeignChange: () => {
      heard++;
      // One that begins when the test is over finds the socket closed.
      dataplane.resync(plan).catch(() => {});
    },
    ...options,
  });
  await dataplane.resync(plan);
  const nft = openIn(namespace);
  const run = (text: string) => namespace.run('nft', text.replaceAll('TABLE', `${nftFamily(family)} nodeplane`));
  return { dataplane, ports, plan, nft, run, heard: () => heard };
}

describe.each(FAMILIES)('%s: what others destroy is noticed and repaired', (family) => {
  const vip = family === 'IPv4' ? '10.96.10.1' : 'fd00:10:96::1';
  it.each([
    ['the whole ruleset', 'flush ruleset'],
    ['the table', 'delete table TABLE'],
    ['all rules', 'flush table TABLE'],
    ['a chain', 'flush chain TABLE services'],
    ['a map', 'flush map TABLE endpoints'],
    ['an element', `delete element TABLE services { ${vip} . tcp . 80 }`],
    ['a rule that is not ours', 'insert rule TABLE check-services accept'],
    ['that packets meet the table', 'add table TABLE { flags dormant; }'],
    ['where a chain is', `delete chain TABLE nat-output; ${OTHERWISE}`],
    ['what a chain does at its end', 'add chain TABLE filter-input { policy drop; }'],
    ['all hooks, and a chain', 'add table TABLE { flags dormant; }; delete chain TABLE filter-input'],
  ])('%s', async (_, destroy) => {
    const { nft, run, heard } = await setup(family);
    const before = snapshot(nft, family);
    run(destroy);
    await expect.poll(() => snapshot(nft, family)).toEqual(before);
    expect(heard()).toBe(1);
  });

  it.each([
    ['add table TABLE { flags dormant; }', 'table nodeplane', [], ['flags dormant;']],
    [
      `delete chain TABLE nat-output; ${OTHERWISE}`,
      'chain nat-output',
      ['type nat hook output priority -100; policy accept;'],
      ['type nat hook output priority filter + 7; policy accept;'],
    ],
    [
      'add chain TABLE filter-input { policy drop; }',
      'chain filter-input',
      ['type filter hook input priority filter; policy accept;'],
      ['type filter hook input priority filter; policy drop;'],
    ],
  ])('and told: %s', async (destroy, object, ours, theirs) => {
    const { dataplane, plan, run } = await setup(family, { onForeignChange: () => {} });
    run(destroy);
    expect(await dataplane.verify()).toEqual([{ object, difference: 'changed', ours, theirs }]);
    await dataplane.resync(plan);
    expect(await dataplane.verify()).toEqual([]);
  });

  it('and told: a client that others sent to an endpoint which is not there', async () => {
    const { dataplane, plan, ports, run, nft } = await setup(family, { onForeignChange: () => {} });
    const [ip, there, elsewhere, ...clients] =
      family === 'IPv4'
        ? ['10.96.40.1', '10.8.0.1', '10.8.0.9', '203.0.113.1', '203.0.113.2']
        : ['fd00:96::40:1', 'fd00:8::1', 'fd00:8::9', '2001:db8::1', '2001:db8::2'];
    const remote = family === 'IPv4' ? `${there}:80` : `[${there}]:80`;
    const port = samplePort({ name: 'shop/sticky:http', clusterIp: ip, affinitySeconds: 600, remote: [remote] });
    ports.set(port.key, port);
    await dataplane.sync(plan, { upserted: [port], removed: [] });
    const map = 'affinity-shop/sticky/tcp/http';
    run(`add element TABLE ${map} { ${clients[0]} : ${there} . 80, ${clients[1]} : ${elsewhere} . 80 }`);
    expect(await dataplane.verify()).toEqual([
      {
        object: `element ${map} ${clients[1]}`,
        difference: 'unexpected',
        ours: [],
        theirs: [expect.stringContaining(`: ${elsewhere} . 80`)],
      },
    ]);
    await dataplane.resync(plan);
    expect(await dataplane.verify()).toEqual([]);
    expect(nft.listElements({ kind: 'set', family: nftFamily(family), table: 'nodeplane', name: map })).toHaveLength(1);
  });

  it('but neither its own changes, large and small, nor those in other tables', async () => {
    const { dataplane, plan, ports, run, heard, nft } = await setup(family);
    const address = (n: number) => (family === 'IPv4' ? `10.96.40.${n}` : `fd00:96::40:${n}`);
    const remote = Array.from({ length: 1500 }, (_, n) =>
      family === 'IPv4' ? `10.8.${n >> 8}.${n & 255}:80` : `[fd00:8::${n.toString(16)}]:80`,
    );
    for (const endpoints of [remote.slice(0, 3), remote, remote.slice(0, 2)]) {
      const port = samplePort({ name: 'shop/own', clusterIp: address(1), remote: endpoints });
      ports.set(port.key, port);
      await dataplane.sync(plan, { upserted: [port], removed: [] });
    }
    await dataplane.resync(plan);
    run('add table ip somebody');
    run('add chain ip somebody theirs');
    const other = nftFamily(family) === 'ip' ? 'ip6' : 'ip';
    run(`add table ${other} nodeplane`);
    // Events come in order: what would have been told of the above is told before this.
    run('flush table TABLE');
    await expect
      .poll(() => nft.listRules({ kind: 'table', family: nftFamily(family), name: 'nodeplane' }).length)
      .not.toBe(0);
    expect(heard()).toBe(1);
    expect(await dataplane.verify()).toEqual([]);
  });
});
