import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import type { NftRule } from '../../netlink/nftables/index.ts';
import { RouteRules } from '../../routes/index.ts';
import { registerEncryptionMetrics } from './encryption-metrics.ts';

const NAME = 'nodeplane_routes_unencrypted_dropped_packets_total';

it('shows what the rules have dropped at each scrape, and 0 while there are none', async () => {
  const nft = new FakeNftables();
  const registry = new Registry();
  registerEncryptionMetrics(registry, () => nft);
  expect(await registry.metrics()).toContain(`${NAME}{ip_family="IPv6"} 0`);

  const clock = new FakeClock();
  const rules = new RouteRules({
    nodeName: 'n1',
    settings: {
      tunnelPort: undefined,
      wireguard: { port: 51820, podRanges: [], mayBeDirect: false },
      masqueradeMark: 0x4000,
      masquerade: undefined,
    },
    open: () => nft,
    watch: (listener) => nft.watch(listener),
    clock,
    observe() {},
  });
  rules.start();
  await clock.advance(100);
  const listRules = nft.listRules.bind(nft);
  let packets = 3n;
  const counted = ({ expressions, chain, ...rule }: NftRule): NftRule => ({
    ...rule,
    chain,
    expressions: expressions.map((one) =>
      one.kind === 'counter' && chain === 'encrypted-only-ipv4' ? { ...one, packets } : one,
    ),
  });
  nft.listRules = (of) => listRules(of).map(counted);
  expect(await registry.metrics()).toContain(`${NAME}{ip_family="IPv4"} 3`);
  packets = 5n;
  const text = await registry.metrics();
  expect(text).toContain(`${NAME}{ip_family="IPv4"} 5`);
  expect(text).toContain(`${NAME}{ip_family="IPv6"} 0`);
  await rules.stop();
});
