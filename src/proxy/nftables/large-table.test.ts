import { expect, it, vi } from 'vitest';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import { sampleNode, samplePlan, samplePort } from '../../../test/samples/sample-plan.ts';
import type { ServicePortPlan } from '../index.ts';
import { NftablesDataplane } from './dataplane.ts';

/** Each takes an element in several maps. */
function ports(count: number): ServicePortPlan[] {
  return Array.from({ length: count }, (_, n) => {
    const clusterIp = `10.96.${n >> 8}.${n & 255}`;
    return samplePort({ name: `shop/web-${n}`, clusterIp, remote: ['10.244.9.1:80'] });
  });
}

/** Which way the transaction goes that adds the first Service with seven endpoints: its chain is a new one. */
async function wayOfNewRules(services: number): Promise<'at once' | 'beside the event loop'> {
  const nft = new FakeNftables();
  const dataplane = new NftablesDataplane({ family: 'IPv4', open: () => nft });
  const plan = samplePlan('IPv4', sampleNode(), ports(services));
  await dataplane.resync(plan);
  const beside = vi.spyOn(nft, 'commitAsync');
  const remote = Array.from({ length: 7 }, (_, n) => `10.244.8.${n}:80`);
  const upserted = [samplePort({ name: 'shop/other', clusterIp: '10.97.0.1', remote })];
  await dataplane.sync(
    { ...plan, ports: new Map(plan.ports).set(upserted[0]!.key, upserted[0]!) },
    { upserted, removed: [] },
  );
  return beside.mock.calls.length > 0 ? 'beside the event loop' : 'at once';
}

it('new rules go to a large table beside the event loop: the kernel follows all its verdict maps', async () => {
  expect(await wayOfNewRules(10)).toBe('at once');
  expect(await wayOfNewRules(4000)).toBe('beside the event loop');
});

it('the rules of a table without any Service are encoded beside the event loop, too', async () => {
  const nft = new FakeNftables();
  const beside = vi.spyOn(nft, 'commitAsync');
  const dataplane = new NftablesDataplane({ family: 'IPv6', open: () => nft });
  await dataplane.resync(samplePlan('IPv6', sampleNode(), []));
  expect(beside).toHaveBeenCalledOnce();
});
