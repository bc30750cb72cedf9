import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import { completePlan } from '../../../test/samples/complete-plan.ts';
import { randomChanges } from '../../../test/samples/random-plan.ts';
import { snapshot } from '../../../test/samples/ruleset-snapshot.ts';
import { sampleNode, samplePlan, samplePort } from '../../../test/samples/sample-plan.ts';
import type { IpFamily } from '../../core/index.ts';
import type { ServicePortPlan } from '../index.ts';
import { NftablesDataplane } from './dataplane.ts';

function setup(ports: readonly ServicePortPlan[], family: IpFamily = 'IPv4') {
  const nft = new FakeNftables();
  const open = () => nft;
  const dataplane = new NftablesDataplane({ family, open });
  const plan = { ...samplePlan(family, sampleNode(), []), ports: new Map(ports.map((port) => [port.key, port])) };
  const upsert = (...upserted: ServicePortPlan[]) => {
    for (const port of upserted) plan.ports.set(port.key, port);
    return dataplane.sync(plan, { upserted, removed: [] });
  };
  return { nft, open, dataplane, plan, upsert };
}

describe.each(['IPv4', 'IPv6'] as const)('%s', (family) => {
  it('has what a fresh full sync has, whatever changed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        const { nft, dataplane, plan } = setup([], family);
        await dataplane.resync(plan);
        for (const delta of randomChanges(family, 20, plan.ports, seed)) {
          const before = nft.commits.length;
          expect((await dataplane.sync(plan, delta)).leftOut).toEqual([]);
          expect(nft.commits.length - before).toBeLessThanOrEqual(1);
        }
        expect(await dataplane.verify()).toEqual([]);
        // Chains nobody needs stay until all is made anew: with them, both are the same.
        const { dataplane: other, nft: fresh } = setup([], family);
        await other.resync(plan);
        const [ours, theirs] = [snapshot(nft, family), snapshot(fresh, family)];
        expect({ ...ours, ...theirs }).toEqual(ours);
        const sets = (table: object) => Object.keys(table).filter((name) => name.startsWith('set '));
        expect(sets(ours).sort()).toEqual(sets(theirs).sort());
      }),
      { numRuns: 6 },
    );
  }, 60_000);

  it('writes nothing again when all is right', async () => {
    const { nft, open, dataplane } = setup([], family);
    const plan = completePlan(family);
    await dataplane.resync(plan);
    expect(nft.commits).toHaveLength(1);
    await dataplane.resync(plan);
    await new NftablesDataplane({ family, open }).resync(plan);
    expect(nft.commits).toHaveLength(1);
  });
});

it('hands a destination from one Service to another in one transaction, whichever is named first', async () => {
  const one = { name: 'a/one', clusterIp: '10.96.0.1', remote: ['10.1.1.1:80'] };
  const other = { name: 'b/other', clusterIp: '10.96.0.2', remote: ['10.1.1.2:80'] };
  const taken = { externalIps: ['203.0.113.1'], nodePort: 30_080 };
  const ends = [
    [one, { ...other, ...taken }],
    [{ ...one, ...taken }, other],
  ].map((samples) => samples.map(samplePort));
  for (const reversed of [false, true]) {
    const { nft, dataplane, plan, upsert } = setup(ends[0]!);
    await dataplane.resync(plan);
    for (const ports of [ends[1]!, ends[0]!]) {
      const before = nft.commits.length;
      await upsert(...(reversed ? ports.toReversed() : ports));
      expect(nft.commits.length - before).toBe(1);
      const fresh = setup(ports);
      await fresh.dataplane.resync(fresh.plan);
      const [ours, theirs] = [snapshot(nft, 'IPv4'), snapshot(fresh.nft, 'IPv4')];
      expect({ ...ours, ...theirs }).toEqual(ours);
    }
  }
});

describe('verify', () => {
  it('reads nothing while nobody has changed the ruleset', async () => {
    const { nft, dataplane, plan, upsert } = setup([]);
    await dataplane.resync(plan);
    await upsert(samplePort({ name: 'shop/web', clusterIp: '10.96.0.1', remote: ['10.1.1.1:80'] }));
    const { listings } = nft;
    expect(await dataplane.verify()).toEqual([]);
    expect(nft.listings).toBe(listings);
    nft.commitAsOther({ operation: 'add', object: { kind: 'table', family: 'ip', name: 'somebody' } });
    expect(await dataplane.verify()).toEqual([]);
    expect(nft.listings).toBeGreaterThan(listings);
  });

  it('finds what was changed before one of our own commits', async () => {
    const { nft, dataplane, plan, upsert } = setup([]);
    await dataplane.resync(plan);
    const chain = { kind: 'chain', family: 'ip', table: 'nodeplane', name: 'services' } as const;
    nft.commitAsOther({ operation: 'flush', object: chain });
    await upsert(samplePort({ name: 'shop/web', clusterIp: '10.96.0.1', remote: ['10.1.1.1:80'] }));
    expect(await dataplane.verify()).toEqual([{ object: 'chain services', difference: 'changed' }]);
    nft.flushRuleset();
    expect(await dataplane.verify()).toEqual([{ object: 'table nodeplane', difference: 'missing' }]);
  });
});

it('repairs by a full sync what makes a change fail', async () => {
  const port = samplePort({ name: 'shop/web', clusterIp: '10.96.0.1', remote: ['10.1.1.1:80', '10.1.1.2:80'] });
  const { nft, dataplane, plan, upsert } = setup([port]);
  await dataplane.resync(plan);
  nft.flushRuleset();
  const { leftOut } = await upsert({ ...port, clusterEndpoints: port.clusterEndpoints.slice(1) });
  expect(leftOut).toEqual([]);
  expect(await dataplane.verify()).toEqual([]);
});

it('reads again when others change the ruleset while it reads', async () => {
  const { nft, dataplane, plan } = setup([]);
  await dataplane.resync(plan);
  const commit = nft.commit.bind(nft);
  let disturbed = 0;
  nft.commit = (changes, options) => {
    if (disturbed++ < 2)
      nft.commitAsOther({ operation: 'add', object: { kind: 'table', family: 'ip', name: `t${disturbed}` } });
    return commit(changes, options);
  };
  plan.ports.set('x', samplePort({ name: 'shop/web', clusterIp: '10.96.0.1', remote: ['10.1.1.1:80'] }));
  await dataplane.resync(plan);
  expect(disturbed).toBe(3);
  expect(await dataplane.verify()).toEqual([]);
});
