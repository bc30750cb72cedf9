import { expect, it } from 'vitest';
import { FakeNftables } from '../../../../test/fakes/fake-nftables.ts';
import { parseCidr } from '../../../core/index.ts';
import { cmp, drop, interfaceName, jump, meta, type NftChange, type NftRule } from '../../../netlink/nftables/index.ts';
import { obstaclesTo } from './obstacles.ts';
import { packetsOf } from './packets.ts';

const TABLE = { family: 'inet', table: 'site' } as const;
const packets = packetsOf(parseCidr('10.244.1.0/24'), { link: 'cni0', isShared: true });

/** A firewall whose chain for forwarded packets leads to others, one after the other, and drops what comes back from all. */
function firewall(chains: number, rulesOfEach: number): FakeNftables {
  const ruleset = new FakeNftables();
  const rule = (chain: string, ...expressions: NftRule['expressions']): NftChange => ({
    operation: 'add',
    object: { kind: 'rule', ...TABLE, chain, expressions },
  });
  const names = Array.from({ length: chains }, (_, n) => `zone-${n}`);
  const base = { type: 'filter', hook: 'forward', priority: 10, policy: 'accept' } as const;
  ruleset.commitAsOther(
    { operation: 'add', object: { kind: 'table', family: 'inet', name: 'site' } },
    ...names.map((name): NftChange => ({ operation: 'add', object: { kind: 'chain', ...TABLE, name } })),
    ...names.flatMap((name) =>
      Array.from({ length: rulesOfEach }, () => rule(name, meta('iifname'), cmp.equal(interfaceName('eth7')), drop)),
    ),
    { operation: 'add', object: { kind: 'chain', ...TABLE, name: 'passing', base } },
    ...names.map((name) => rule('passing', jump(name))),
    rule('passing', drop),
  );
  return ruleset;
}

/** How many chains and rules a look at it reads. */
function look(ruleset: FakeNftables) {
  let [chains, rules] = [0, 0];
  const listRules = ruleset.listRules.bind(ruleset);
  const getChain = ruleset.getChain.bind(ruleset);
  ruleset.getChain = (of) => {
    const chain = getChain(of);
    return chain && { ...chain, use: listRules(of).length };
  };
  ruleset.listRules = (of) => {
    const listed = listRules(of);
    if (listed.length > 0) chains++;
    rules += listed.length;
    return listed;
  };
  return { told: obstaclesTo(ruleset, packets), chains, rules };
}

it.each([
  ['few of both', 20, 5, { chains: 21, rules: 121 }],
  ['many chains', 100, 1, { chains: 30, rules: 130 }],
  ['long chains', 9, 150, { chains: 2, rules: 160 }],
])('reads what there is time for, and judges by that: %s', (_, chains, rulesOfEach, read) => {
  const { told, ...done } = look(firewall(chains, rulesOfEach));
  expect(told).toEqual([expect.stringContaining('Chain "passing" of the nftables table "inet site" ')]);
  expect(done).toEqual(read);
});
