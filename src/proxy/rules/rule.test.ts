import { describe, expect, it } from 'vitest';
import { formatChance, formatRule } from './rule.ts';

describe('formatRule', () => {
  it('puts the parts into iptables-save’s order', () => {
    expect(
      formatRule({
        target: '-j DROP',
        destinationPort: 80,
        match: '-m addrtype --dst-type LOCAL',
        comment: 'a/b:c',
        protocol: 'tcp',
        inInterface: '-i eth0',
        outInterface: '! -o lo',
        destination: '-d 10.0.0.1/32',
        source: '! -s 10.0.0.0/8',
      }),
    ).toBe(
      '! -s 10.0.0.0/8 -d 10.0.0.1/32 -i eth0 ! -o lo -p tcp -m comment --comment "a/b:c" -m addrtype --dst-type LOCAL -m tcp --dport 80 -j DROP',
    );
  });

  it.each([
    ['plain_Word-1', 'plain_Word-1'],
    ['two words', '"two words"'],
    ['a"\n-j ACCEPT\\', '"a__-j ACCEPT_"'],
    ['naïve', 'na_ve'],
    ['x'.repeat(300), 'x'.repeat(255)],
  ])('lets no comment end its argument: %j', (comment, written) => {
    expect(formatRule({ comment })).toBe(`-m comment --comment ${written}`);
  });
});

it.each([
  [2 ** 31, '1.00000000000'],
  [2 ** 30, '0.50000000000'],
  [715_827_883, '0.33333333349'],
  // 0.000244140625, between two: C prints the even one.
  [2 ** 19, '0.00024414062'],
  [3 * 2 ** 19, '0.00073242188'],
  [0, '0.00000000000'],
])('formatChance prints %i of 2^31 as %s', (units, text) => {
  expect(formatChance(units)).toBe(text);
});
