import { afterAll, describe, expect, it } from 'vitest';
import {
  type CommitReport,
  type NftChange,
  NftCommitError,
  type NftRuleset,
  nftFamily,
} from '../../../src/netlink/nftables/index.ts';
import type { ServicePortPlan } from '../../../src/proxy/index.ts';
import { checkNftables, cleanupNftables } from '../../../src/proxy/nftables/index.ts';
import { completePlan } from '../../samples/complete-plan.ts';
import { snapshot } from '../../samples/ruleset-snapshot.ts';
import { samplePort } from '../../samples/sample-plan.ts';
import { createNamespace, removeAll } from '../namespace.ts';
import { dataplaneIn, FAMILIES, openIn, recorded } from './fixtures.ts';

afterAll(removeAll);

function setup(family: (typeof FAMILIES)[number]) {
  const namespace = createNamespace(`dp-${family}`);
  const nft = openIn(namespace);
  const reports: CommitReport[] = [];
  const dataplane = dataplaneIn(namespace, family, { open: () => recorded(openIn(namespace), reports) });
  const ports = new Map(completePlan(family).ports);
  const plan = { ...completePlan(family), ports };
  const upsert = (...upserted: ServicePortPlan[]) => {
    for (const port of upserted) ports.set(port.key, port);
    return dataplane.sync(plan, { upserted, removed: [] });
  };
  const run = (text: string) => namespace.run('nft', text.replaceAll('TABLE', `${nftFamily(family)} nodeplane`));
  return { namespace, nft, reports, dataplane, ports, plan, upsert, run };
}

/** A Service with this many endpoints. */
const wide = (family: string, endpoints: number, more: object = {}) =>
  samplePort({
    name: 'shop/wide:http',
    clusterIp: family === 'IPv4' ? '10.96.20.1' : 'fd00:96::20:1',
    remote: Array.from({ length: endpoints }, (_, n) =>
      family === 'IPv4' ? `10.244.3.${n}:8080` : `[fd00:10:244:3::${n.toString(16)}]:8080`,
    ),
    ...more,
  });

describe.each(FAMILIES)('%s', (family) => {
  it('has all that it needs here', () => {
    expect(checkNftables(() => openIn(createNamespace('check')), family)).toBeUndefined();
  });

  it('finds a Service the kernel refuses without naming it, and makes nothing for that', async () => {
    const { namespace, plan, ports } = setup(family);
    const bad = wide(family, 3);
    const clusterIp = family === 'IPv4' ? '0a601401' : 'fd000096000000000000000000200001';
    const isBad = (key: Uint8Array) => Buffer.from(key).toString('hex').startsWith(clusterIp);
    const refuse = (changes: readonly NftChange[]) => {
      const about = ({ object }: NftChange) =>
        object.kind === 'elements' && object.elements.some(({ key }) => isBad(key));
      const nobody = { errno: 22, extAck: undefined, changeIndex: undefined, elementIndex: undefined };
      if (changes.some(about)) throw new NftCommitError(changes, [nobody]);
    };
    let checked = 0;
    const open = (): NftRuleset => {
      const nft = openIn(namespace);
      const commit = nft.commit.bind(nft);
      const commitAsync = nft.commitAsync.bind(nft);
      nft.commit = (changes, options) => {
        refuse(changes);
        return commit(changes, options);
      };
      nft.commitAsync = async (changes, options) => {
        refuse(changes);
        if (options?.checkOnly) checked++;
        return commitAsync(changes, options);
      };
      return nft;
    };
    const dataplane = dataplaneIn(namespace, family, { open });
    await dataplane.resync(plan);
    const before = namespace.run('nft', 'list', 'ruleset');
    ports.set(bad.key, bad);
    expect((await dataplane.resync(plan)).leftOut!.map(({ key }) => key)).toContain(bad.key);
    expect(checked).toBeGreaterThan(2);
    expect(namespace.run('nft', 'list', 'ruleset')).toBe(before);
    expect(await dataplane.verify()).toEqual([]);
  });

  it('writes at most eight messages for one endpoint, and none for no change', async () => {
    const { dataplane, plan, upsert, reports } = setup(family);
    await dataplane.resync(plan);
    const everything = { nodePort: 30100, externalIps: family === 'IPv4' ? ['203.0.113.99'] : ['2001:db8::99'] };
    for (const more of [{}, everything, { affinitySeconds: 60 }]) {
      await upsert(wide(family, 12, more));
      for (const endpoints of [11, 12, 13, 10]) {
        reports.length = 0;
        await upsert(wide(family, endpoints, more));
        expect(reports).toHaveLength(1);
        expect(reports[0]!.messages).toBeLessThanOrEqual(8);
      }
      reports.length = 0;
      await upsert(wide(family, 10, more));
      await dataplane.sync(plan, { upserted: [], removed: [] });
      expect(reports).toEqual([]);
    }
    expect(await dataplane.verify()).toEqual([]);
  });

  it('writes nothing when it starts again and everything is right', async () => {
    const { namespace, dataplane, plan, upsert } = setup(family);
    await dataplane.resync(plan);
    // A gap in the middle: the endpoints are in other slots than a first sync would give them.
    await upsert(wide(family, 9));
    const port = wide(family, 9);
    const endpoints = port.clusterEndpoints.filter((_, index) => index !== 3);
    await upsert({ ...port, clusterEndpoints: endpoints });
    dataplane.close();
    const reports: CommitReport[] = [];
    const again = dataplaneIn(namespace, family, { open: () => recorded(openIn(namespace), reports) });
    const { objects } = await again.resync(plan);
    expect(objects).toMatchObject({ elements: { written: 0 }, rules: { written: 0 } });
    expect(reports).toEqual([]);
    expect(await again.verify()).toEqual([]);
  });

  it('says in words what others changed, and a resync repairs just that', async () => {
    const { nft, dataplane, plan, run, reports } = setup(family);
    await dataplane.resync(plan);
    const before = snapshot(nft, family);
    const vip = family === 'IPv4' ? '10.96.10.1' : 'fd00:10:96::1';
    run(`delete element TABLE services { ${vip} . tcp . 80 }`);
    run(`add element TABLE endpoints { ${vip} . tcp . 80 . 7 : ${vip} . 81 }`);
    run('add chain TABLE stranger');
    run('add rule TABLE stranger drop');
    run('insert rule TABLE services drop');
    run('flush chain TABLE external-1');
    run(`delete element TABLE endpoints { ${vip} . udp . 53 . 0 }`);
    run(`add element TABLE endpoints { ${vip} . udp . 53 . 0 : ${vip} . 53 }`);
    expect([...(await dataplane.verify())].sort((a, b) => (a.object < b.object ? -1 : 1))).toMatchObject([
      { object: 'chain external-1', difference: 'changed' },
      { object: 'chain services', difference: 'changed' },
      { object: 'chain stranger', difference: 'unexpected' },
      { object: `element endpoints ${vip} . tcp . 80 . 7`, difference: 'unexpected' },
      { object: `element endpoints ${vip} . udp . 53 . 0`, difference: 'changed' },
      { object: `element services ${vip} . tcp . 80`, difference: 'missing' },
    ]);
    reports.length = 0;
    await dataplane.resync(plan);
    expect(snapshot(nft, family)).toEqual(before);
    expect(reports).toHaveLength(1);
    expect(reports[0]!.messages).toBeLessThan(25);
    expect(await dataplane.verify()).toEqual([]);
  });

  it('makes a table of another shape anew, in one transaction', async () => {
    const { nft, dataplane, plan, run, reports } = setup(family);
    run('add table TABLE');
    run('add map TABLE services { type inet_service : verdict; }');
    run('add chain TABLE nat-prerouting { type filter hook prerouting priority 5; }');
    run('add rule TABLE nat-prerouting tcp dport vmap @services');
    await dataplane.resync(plan);
    expect(reports).toHaveLength(1);
    const fresh = createNamespace('fresh');
    await dataplaneIn(fresh, family).resync(plan);
    expect(snapshot(nft, family)).toEqual(snapshot(openIn(fresh), family));
    expect(await dataplane.verify()).toEqual([]);
  });

  it('compiles everything anew when the node changes', async () => {
    const { nft, dataplane, plan } = setup(family);
    await dataplane.resync(plan);
    const node = { ...plan.node, masqueradeAll: true, masqueradeMark: 0x8000 };
    await dataplane.sync({ ...plan, node }, { upserted: [], removed: [] });
    const fresh = createNamespace('fresh');
    await dataplaneIn(fresh, family).resync({ ...plan, node });
    expect(snapshot(nft, family)).toEqual(snapshot(openIn(fresh), family));
  });

  it('gives a destination that two Services want to the first by name, whoever came first', async () => {
    const { namespace, dataplane, plan, ports, upsert } = setup(family);
    await dataplane.resync(plan);
    const outer = family === 'IPv4' ? '203.0.113.77' : '2001:db8::77';
    const pod = (n: number) => (family === 'IPv4' ? `10.244.9.${n}:80` : `[fd00:10:244:9::${n}]:80`);
    const clusterIp = (n: number) => (family === 'IPv4' ? `10.96.30.${n}` : `fd00:96::30:${n}`);
    const claim = (name: string, n: number) =>
      samplePort({ name, clusterIp: clusterIp(n), externalIps: [outer], nodePort: 30777, remote: [pod(n)] });
    const owners = () => {
      const text = namespace.run('nft', 'list', 'table', nftFamily(family), 'nodeplane');
      return ['external IP', 'node port'].map(
        (what) => new RegExp(`(?:${outer} \\. tcp \\. 80|tcp \\. 30777) comment "(\\S+) ${what}"`).exec(text)?.[1],
      );
    };
    const [early, late] = [claim('a/first', 1), claim('b/second', 2)];
    await upsert(late);
    expect(owners()).toEqual(['b/second', 'b/second']);
    await upsert(early);
    expect(owners()).toEqual(['a/first', 'a/first']);
    ports.delete(early.key);
    await dataplane.sync(plan, { upserted: [], removed: [early] });
    expect(owners()).toEqual(['b/second', 'b/second']);
    expect(await dataplane.verify()).toEqual([]);
  });

  it('cleans up its own table and kube-proxy’s, and nothing else', async () => {
    const { namespace, nft, dataplane, plan, run } = setup(family);
    await dataplane.resync(plan);
    for (const name of ['kube-proxy', 'somebody']) run(`add table ${nftFamily(family)} ${name}`);
    await dataplane.cleanup();
    const left = () => nft.listTables().map(({ name }) => name);
    expect(left()).toEqual(['somebody']);
    await dataplane.cleanup();
    run(`add table ${nftFamily(family)} kube-proxy`);
    expect(cleanupNftables(nft, family)).toEqual(['kube-proxy']);
    expect(namespace.run('nft', 'list', 'tables')).toBe(`table ${nftFamily(family)} somebody\n`);
  });
});

it('keeps to its table among others of the same family', async () => {
  const namespace = createNamespace('two');
  const [one, two] = ['one', 'two'].map((table) => dataplaneIn(namespace, 'IPv4', { table }));
  const plan = completePlan('IPv4');
  await one!.resync(plan);
  await two!.resync(plan);
  const nft: NftRuleset = openIn(namespace);
  expect(snapshot(nft, 'IPv4', 'one')).toEqual(snapshot(nft, 'IPv4', 'two'));
  await one!.cleanup();
  expect(await two!.verify()).toEqual([]);
});
