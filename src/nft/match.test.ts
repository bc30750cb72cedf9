import { describe, expect, it } from 'vitest';
import { parseCidr } from '../core/index.ts';
import { ruleText } from '../netlink/nftables/text/index.ts';
import * as match from './match.ts';
import { sameRuleBodies } from './same-rules.ts';

describe('matches', () => {
  it.each([
    [match.isNew(), 'ct state new'],
    [match.isDestinationTranslated(), 'ct status dnat'],
    [match.isConfirmed(), 'ct status confirmed'],
    [match.isMarked(0x4000), 'meta mark & 0x00004000 != 0x00000000'],
    [match.clearMarkBits(0x4000), 'meta mark set meta mark & 0xffffbfff'],
    [match.isLocalAddress('saddr'), 'fib saddr type local'],
    [match.addressIn('daddr', parseCidr('10.96.0.0/12'), '!='), 'ip daddr != 10.96.0.0/12'],
    [match.addressIn('saddr', parseCidr('10.0.0.1/32'), '=='), 'ip saddr 10.0.0.1'],
    [match.inBlock('saddr', parseCidr('10.0.0.1/32')), 'ip saddr 10.0.0.1'],
    [match.inBlockOf('daddr', 'IPv4', { prefixLength: 26, set: 'x' }), 'ip daddr & 255.255.255.192 @x'],
    [match.isFamily('IPv6'), 'meta nfproto ipv6'],
  ])('read as they should: %#', (expressions, text) => {
    expect(ruleText(expressions, 'ip')).toBe(text);
  });

  it('compare a single address without a mask, unless asked for one', () => {
    const block = parseCidr('fd00::1/128');
    expect(match.addressIn('daddr', block, '==').map(({ kind }) => kind)).toEqual(['payload', 'cmp']);
    expect(match.inBlock('daddr', block).map(({ kind }) => kind)).toEqual(['payload', 'bitwise', 'cmp']);
  });
});

it('rules are the same with the same expressions and comments in the same order', () => {
  const [one, other] = [{ expressions: match.isNew() }, { expressions: match.isMarked(1), comment: 'x' }];
  expect(sameRuleBodies([one, other], [one, other])).toBe(true);
  expect(sameRuleBodies([one, other], [other, one])).toBe(false);
  expect(sameRuleBodies([one], [one, other])).toBe(false);
  expect(sameRuleBodies([{ ...other, comment: 'y' }], [other])).toBe(false);
});
