import { release } from 'node:os';
import { describe, expect, it } from 'vitest';
import { FakeNftables, type Refuse } from '../../../test/fakes/fake-nftables.ts';
import { NodeplaneError } from '../../core/index.ts';
import type { NftChange } from '../../netlink/nftables/index.ts';
import { checkNftables } from './check-nftables.ts';

const EPERM = 1;
const ENOENT = 2;
const EOPNOTSUPP = 95;

const hasExpression =
  (kind: string) =>
  ({ object }: NftChange) =>
    object.kind === 'rule' && 'expressions' in object && object.expressions.some((part) => part.kind === kind);

function check(refuse: Refuse) {
  const nft = new FakeNftables();
  nft.refuse = refuse;
  const answer = checkNftables(() => nft, 'IPv6');
  expect(nft.listTables()).toEqual([]);
  expect(nft.closed).toBe(true);
  return answer;
}

describe('checkNftables', () => {
  it('says nothing where everything works', () => {
    expect(check(() => undefined)).toBeUndefined();
  });

  it.each([
    ['nft_nat', 'nat', 'nft_nat with nft_numgen'],
    ['nft_masq', 'masquerade', 'nft_masq'],
    ['nft_fib', 'fib', 'nft_fib_ipv6'],
    ['nft_reject', 'reject', 'nft_reject'],
    ['dynamic maps', 'dynset', 'maps that rules write'],
  ])('names what is missing: %s', (_, kind, needs) => {
    // A rule of affinity translates too.
    const answer = check((change) => (hasExpression(kind)(change) ? ENOENT : undefined))!;
    expect(answer).toContain(`Linux ${release()} lacks ${needs}`);
    expect(answer).toContain('Linux 5.13 or newer');
    expect(answer).not.toMatch(/[\n.]$/);
  });

  it('names concatenated ranges where only they are unknown', () => {
    const answer = check(({ object }) =>
      object.kind === 'set' && 'flags' in object && object.flags?.includes('interval') ? EOPNOTSUPP : undefined,
    );
    expect(answer).toContain('lacks sets of ranges with concatenated keys for IPv6');
  });

  it('says that nothing of it is there, or that it may not be used', () => {
    expect(check(() => EOPNOTSUPP)).toContain('lacks nf_tables as Services need it for IPv6');
    expect(check(() => EPERM)).toContain('CAP_NET_ADMIN');
    const closed = () => {
      throw new NodeplaneError('ERR_NETLINK_SOCKET', 'Cannot open a netlink socket');
    };
    expect(checkNftables(closed, 'IPv4')).toBe(`Linux ${release()} has no nf_tables: Cannot open a netlink socket`);
  });

  it('does not take a lack of descriptors for a lack of nf_tables', () => {
    const closed = () => {
      const cause = Object.assign(new Error('too many open files'), { code: 'EMFILE' });
      throw new NodeplaneError('ERR_NETLINK_SOCKET', 'Cannot open a netlink socket', { cause });
    };
    expect(checkNftables(closed, 'IPv4')).toBe(
      `Linux ${release()} cannot be asked about nf_tables: Cannot open a netlink socket: too many open files`,
    );
  });
});
