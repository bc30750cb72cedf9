import { expect, it } from 'vitest';
import { FakeNftables } from '../../../test/fakes/fake-nftables.ts';
import type { NftRule } from '../../netlink/nftables/index.ts';
import { rulesLayout } from './layout.ts';
import { RefusalReader } from './refusals.ts';
import { reconcileRules } from './rules-kernel.ts';

const SETTINGS = { tunnelPort: 8472, masqueradeMark: 0x4000, masquerade: undefined };

/** A table whose counters stand where packets would have brought them. */
async function counting() {
  const nft = new FakeNftables();
  await reconcileRules(nft, rulesLayout(SETTINGS, [])!, []);
  let counted = [0n, 0n];
  const listRules = nft.listRules.bind(nft);
  nft.listRules = (of) =>
    listRules(of).map(
      (rule, index): NftRule => ({
        ...rule,
        expressions: rule.expressions.map((one) =>
          one.kind === 'counter' ? { ...one, packets: counted[index]! } : one,
        ),
      }),
    );
  const count = (...packets: [bigint, bigint]) => {
    counted = packets;
  };
  return { nft, count };
}

it('tells each packet once, and none from before it began', async () => {
  const { nft, count } = await counting();
  const reader = new RefusalReader();
  count(5n, 0n);
  expect(reader.read(nft)).toEqual([]);
  count(7n, 1n);
  expect(reader.read(nft)).toMatchObject([
    { family: 'IPv4', packets: 2 },
    { family: 'IPv6', packets: 1 },
  ]);
  expect(reader.read(nft)).toEqual([]);
});

it('counts on when the table was made anew', async () => {
  const { nft, count } = await counting();
  const reader = new RefusalReader();
  count(5n, 5n);
  reader.read(nft);
  count(2n, 5n);
  expect(reader.read(nft)).toMatchObject([{ family: 'IPv4', packets: 2 }]);
});

it('reads nothing of a table that is gone', () => {
  expect(new RefusalReader().read(new FakeNftables())).toEqual([]);
});
