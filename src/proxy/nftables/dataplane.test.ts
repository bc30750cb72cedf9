import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import { sampleNode, samplePlan, samplePort } from '../../../test/samples/sample-plan.ts';
import type { ServicePortPlan } from '../index.ts';
import { NftablesDataplane } from './dataplane.ts';

function setup(ports: readonly ServicePortPlan[], { listens = false } = {}) {
  const nft = new FakeNftables();
  const hearing = { watch: nft.watch.bind(nft), onForeignChange: () => {}, clock: new FakeClock() };
  const dataplane = new NftablesDataplane({ family: 'IPv4', open: () => nft, ...(listens && hearing) });
  const plan = { ...samplePlan('IPv4', sampleNode(), []), ports: new Map(ports.map((port) => [port.key, port])) };
  const upsert = (...upserted: ServicePortPlan[]) => {
    for (const port of upserted) plan.ports.set(port.key, port);
    return dataplane.sync(plan, { upserted, removed: [] });
  };
  return { nft, dataplane, plan, upsert };
}

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

  it('reads nothing while others change only what is theirs', async () => {
    const { nft, dataplane, plan, upsert } = setup([], { listens: true });
    await dataplane.resync(plan);
    const { listings } = nft;
    const theirs = { kind: 'table', family: 'ip', name: 'somebody' } as const;
    nft.commitAsOther({ operation: 'add', object: theirs });
    await Promise.resolve();
    await upsert(samplePort({ name: 'shop/web', clusterIp: '10.96.0.1', remote: ['10.1.1.1:80'] }));
    await Promise.resolve();
    nft.commitAsOther({ operation: 'delete', object: theirs });
    await Promise.resolve();
    expect(await dataplane.verify()).toEqual([]);
    expect(nft.listings).toBe(listings);
    const chain = { kind: 'chain', family: 'ip', table: 'nodeplane', name: 'services' } as const;
    nft.commitAsOther({ operation: 'flush', object: chain });
    await Promise.resolve();
    expect(await dataplane.verify()).toMatchObject([{ object: 'chain services', difference: 'changed' }]);
  });

  it('finds what was changed before one of our own commits', async () => {
    const { nft, dataplane, plan, upsert } = setup([]);
    await dataplane.resync(plan);
    const chain = { kind: 'chain', family: 'ip', table: 'nodeplane', name: 'services' } as const;
    nft.commitAsOther({ operation: 'flush', object: chain });
    await upsert(samplePort({ name: 'shop/web', clusterIp: '10.96.0.1', remote: ['10.1.1.1:80'] }));
    expect(await dataplane.verify()).toMatchObject([{ object: 'chain services', difference: 'changed' }]);
    nft.flushRuleset();
    expect(await dataplane.verify()).toMatchObject([{ object: 'table nodeplane', difference: 'missing' }]);
  });
});

it('repairs by a full sync what makes a change fail', async () => {
  const port = samplePort({ name: 'shop/web', clusterIp: '10.96.0.1', remote: ['10.1.1.1:80', '10.1.1.2:80'] });
  const { nft, dataplane, plan, upsert } = setup([port]);
  await dataplane.resync(plan);
  nft.flushRuleset();
  const change = () => upsert({ ...port, clusterEndpoints: port.clusterEndpoints.slice(1) });
  // Rules of other Services were missing as well.
  expect(await change()).toMatchObject({ leftOut: [], isWhole: true });
  expect(await dataplane.verify()).toEqual([]);
  expect((await change()).isWhole ?? false).toBe(false);
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
