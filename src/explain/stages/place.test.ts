import { expect, it } from 'vitest';
import { showing } from './place.ts';

const step = (family: string, table: string, name: string) =>
  ({ hook: 'forward', verdict: 'drop', source: 'nftables', chain: { family, table, name }, rule: undefined }) as never;

it.each([
  ['inet', 'firewalld', 'filter_FORWARD', 'nft -a list chain inet firewalld filter_FORWARD'],
  ['ip', 'filter', 'FORWARD', 'nft -a list chain ip filter FORWARD'],
  // nft has no quotes for names, and takes these for words of its own.
  ['ip', 'filter', 'log', 'iptables-nft -t filter -S log'],
  ['ip6', 'mangle', '~log0', "ip6tables-nft -t mangle -S '~log0'"],
  // Nor does a quote of the shell keep it from taking these for two commands.
  ['inet', 'theirs', 'c;delete table ip nat', 'nft -a list table inet theirs'],
  ['inet', 'a;b', 'c', 'nft -a list ruleset'],
])('shows chain %s %s %s', (family, table, name, command) => {
  expect(showing(step(family, table, name))).toBe(command);
});
