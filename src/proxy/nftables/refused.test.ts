import { describe, expect, it } from 'vitest';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import { sampleNode, samplePlan, samplePort } from '../../../test/samples/sample-plan.ts';
import type { NftChange } from '../../netlink/nftables/index.ts';
import type { ServicePortPlan } from '../index.ts';
import { NftablesDataplane } from './dataplane.ts';

const EINVAL = 22;
const ENOMEM = 12;

const port = (n: number, more: object = {}) =>
  samplePort({ name: `shop/web-${n}`, clusterIp: `10.96.0.${n}`, remote: [`10.244.2.${n}:80`], ...more });
const many = (count: number) => Array.from({ length: count }, (_, n) => port(n + 1));

/** Whether a change has an element whose key begins with the cluster IP of one of these ports. */
const about =
  (...numbers: readonly number[]) =>
  ({ operation, object }: NftChange) =>
    operation !== 'delete' &&
    object.kind === 'elements' &&
    object.elements.some(({ key }) => key[0] === 10 && key[1] === 96 && numbers.includes(key[3]!));

function setup(ports: readonly ServicePortPlan[]) {
  const nft = new FakeNftables();
  const dataplane = new NftablesDataplane({ family: 'IPv4', open: () => nft });
  const plan = { ...samplePlan('IPv4', sampleNode(), []), ports: new Map(ports.map((each) => [each.key, each])) };
  const upsert = (...upserted: ServicePortPlan[]) => {
    for (const each of upserted) plan.ports.set(each.key, each);
    return dataplane.sync(plan, { upserted, removed: [] });
  };
  const clusterIps = () =>
    nft
      .listElements({ kind: 'set', family: 'ip', table: 'nodeplane', name: 'cluster-ips' })
      .map(({ key }) => key[3])
      .sort((a, b) => a! - b!);
  return { nft, dataplane, plan, upsert, clusterIps };
}

describe('a Service port the kernel refuses', () => {
  it('is left out of a resync, and the others are programmed', async () => {
    const { nft, dataplane, plan, clusterIps } = setup(many(40));
    nft.refuse = (change) => (about(7, 23)(change) ? EINVAL : undefined);
    const { leftOut } = await dataplane.resync(plan);
    expect(leftOut!.map(({ key }) => key)).toEqual(['shop/web-23/TCP', 'shop/web-7/TCP']);
    expect(leftOut![0]!.reason).toContain('EINVAL');
    expect(clusterIps()).toHaveLength(38);
    expect(nft.commits.length).toBeLessThan(40);
  });

  it('is left out of a change, until it changes or everything is tried again', async () => {
    const { nft, dataplane, plan, upsert, clusterIps } = setup(many(10));
    await dataplane.resync(plan);
    nft.refuse = (change) => (about(50)(change) ? EINVAL : undefined);
    const { leftOut } = await upsert(port(50), port(51));
    expect(leftOut!.map(({ name }) => name)).toEqual(['shop/web-50']);
    expect(clusterIps()).toContain(51);
    expect((await upsert(port(52))).leftOut).toEqual(leftOut);
    nft.refuse = () => undefined;
    expect((await upsert(port(53))).leftOut).toEqual(leftOut);
    expect((await dataplane.resync(plan)).leftOut).toEqual([]);
    expect(clusterIps()).toContain(50);
  });

  it('is found by what is its own: a chain, a map', async () => {
    const { nft, dataplane, plan } = setup([...many(5), port(9, { affinitySeconds: 60 })]);
    nft.refuse = ({ object }) => (object.kind === 'chain' && object.name.startsWith('sticky-') ? EINVAL : undefined);
    expect((await dataplane.resync(plan)).leftOut!.map(({ name }) => name)).toEqual(['shop/web-9']);
    expect(nft.commits.length).toBe(2);
    nft.refuse = ({ object }) => (object.kind === 'set' && object.name.startsWith('affinity-') ? EINVAL : undefined);
    expect((await dataplane.resync(plan)).leftOut!.map(({ name }) => name)).toEqual(['shop/web-9']);
  });

  it('is forgotten when it goes', async () => {
    const { nft, dataplane, plan } = setup(many(5));
    nft.refuse = (change) => (about(3)(change) ? EINVAL : undefined);
    expect((await dataplane.resync(plan)).leftOut).toHaveLength(1);
    const gone = plan.ports.get('shop/web-3/TCP')!;
    plan.ports.delete(gone.key);
    expect((await dataplane.sync(plan, { upserted: [], removed: [gone] })).leftOut).toEqual([]);
  });
});

describe('many Service ports the kernel refuses', () => {
  const bad = (from: number, count: number) => Array.from({ length: count }, (_, n) => from + n);
  const several = (count: number) => Array.from({ length: count }, (_, n) => port(n + 1));

  it('never leave the kernel with fewer of the others than before', async () => {
    const { nft, dataplane, plan, clusterIps } = setup(many(60));
    const culprits = [3, 17, 18, 40, 59];
    nft.refuse = (change) => (about(...culprits)(change) ? EINVAL : undefined);
    for (const n of culprits) plan.ports.delete(`shop/web-${n}/TCP`);
    await dataplane.resync(plan);
    for (const n of culprits) plan.ports.set(`shop/web-${n}/TCP`, port(n));
    const held: number[] = [];
    const commitAsync = nft.commitAsync.bind(nft);
    nft.commitAsync = async (...args) => {
      const report = await commitAsync(...args);
      held.push(clusterIps().length);
      return report;
    };
    const before = nft.generation();
    const { leftOut } = await dataplane.resync(plan);
    expect(leftOut).toHaveLength(culprits.length);
    expect(Math.min(...held)).toBe(55);
    // All that is tried is only asked about: what was right already stays, and nothing else is made.
    expect(nft.generation()).toBe(before);
  });

  it('do not fail the sync when there are more than can be tried: the rest is told, and tried next time', async () => {
    const { nft, dataplane, plan, clusterIps } = setup(several(250));
    nft.refuse = (change) => (about(...bad(50, 200))(change) ? EINVAL : undefined);
    const { leftOut } = await dataplane.resync(plan);
    const suspected = leftOut!.filter(({ untried }) => untried).length;
    expect(suspected).toBeGreaterThan(0);
    expect(nft.commits.length).toBeLessThan(102);
    expect(clusterIps().length).toBeGreaterThan(40);
    const next = await dataplane.resync(plan);
    expect(next.leftOut!.filter(({ untried }) => untried).length).toBeLessThan(suspected);
    nft.refuse = () => undefined;
    expect((await dataplane.resync(plan)).leftOut).toEqual([]);
  }, 60_000);

  it('are all blamed at once when the kernel names them', async () => {
    const { nft, dataplane, plan } = setup(several(20).map((each) => ({ ...each, affinitySeconds: 60 })));
    nft.refuse = ({ object }) => (object.kind === 'set' && object.name.startsWith('affinity-') ? EINVAL : undefined);
    expect((await dataplane.resync(plan)).leftOut).toHaveLength(20);
    expect(nft.commits.length).toBe(2);
  });
});

describe('a failure that is nobody’s', () => {
  it.each([
    ['the kernel has no memory', () => ENOMEM],
    ['a fixed chain is refused', ({ object }: NftChange) => (object.kind === 'chain' ? EINVAL : undefined)],
  ])('fails the whole sync within few tries: %s', async (_, refuse) => {
    const { nft, dataplane, plan } = setup(many(20));
    nft.refuse = refuse;
    await expect(dataplane.resync(plan)).rejects.toThrow(/nf_tables create/);
    expect(nft.commits.length).toBeLessThan(4);
    nft.refuse = () => undefined;
    expect((await dataplane.resync(plan)).leftOut).toEqual([]);
  });
});
