import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import type { IpFamily } from '../../../src/core/index.ts';
import { decodeMatch, decodeTarget, KernelChains, parseRule } from '../../../src/explain/index.ts';
import { ensureAccounting } from '../../../src/netlink/conntrack/index.ts';
import { Netlink } from '../../../src/netlink/index.ts';
import { getSetName } from '../../../src/netlink/ipset/index.ts';
import { Nftables, nftFamily } from '../../../src/netlink/nftables/index.ts';
import { NETLINK_NETFILTER } from '../../../src/netlink/uapi/netlink.ts';
import { iptablesTool, programName, type SavedTable } from '../../../src/proxy/rules/index.ts';
import { inNetns, legacyTables, readLegacyTable } from '../../../src/sys/index.ts';
import { comparable, comparableMatch, comparableTarget } from '../../samples/comparable-rule.ts';
import { CASES, execIn, useOwnLockFile } from '../iptables/fixtures.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { PATIENCE } from '../patience.ts';
import { NETWORKS } from './network.ts';
import { randomTables } from './random-iptables.ts';
import { everyForm, UNREAD } from './xt-rules.ts';

const GOLDEN = new URL('../../golden/', import.meta.url);
const RANDOM_RULESETS = 10;

afterEach(removeAll);

/** What is held in tables, as input for iptables-restore: every form, all that we and kube-proxy write, and random rules. */
function rulesets(family: IpFamily): string[] {
  const golden = (file: string) => readFileSync(new URL(file, GOLDEN), 'utf8');
  const ours = golden(`iptables/complete-${family.toLowerCase()}.rules`);
  return [
    everyForm(family),
    `${ours.replace(/^:(\S+)$/gm, ':$1 -').replace(/\n\*/g, '\nCOMMIT\n*')}COMMIT\n`,
    golden(`kube-proxy-1.36.2/${family === 'IPv4' ? 'iptables' : 'ip6tables'}.save`),
    ...fc.sample(randomTables(NETWORKS[family], 'tcp'), RANDOM_RULESETS).map((text) => text.replace(UNREAD, '')),
  ];
}

// What the programs print is the oracle: it is how these rules were read before.
it.each(CASES)(
  'what is read of rules of %s by %s is what is printed of them',
  async (family, variant) => {
    useOwnLockFile();
    const node = createNamespace('node');
    const sets = makeSets(node, family);
    const exec = execIn(node);
    const read = variant === 'legacy' ? readLegacy : readNft;
    const counts: number[] = [];
    for (const input of rulesets(family)) {
      const restored = await exec(programName(family, variant, 'restore'), [], { input });
      expect(restored.status === 0, `${restored.stderr}\n${input}`).toBe(true);
      const saved = await iptablesTool(family, variant, exec).saveAll();
      counts.push(read(node, family, saved, sets));
    }
    expect(Math.min(...counts)).toBeGreaterThan(15);
  },
  300_000 * PATIENCE,
);

type SetNames = (index: number) => string | undefined;

/** Every rule of every chain that one comes to by jumps; tells how many. */
function readLegacy(
  node: TestNamespace,
  family: IpFamily,
  saved: ReadonlyMap<string, SavedTable>,
  setName: SetNames,
): number {
  const tables = inNetns(node.path, () =>
    legacyTables(family)!.map((name) => [name, readLegacyTable(family, name)] as const),
  );
  expect(tables.map(([name]) => name).sort()).toEqual([...saved.keys()].sort());
  let count = 0;
  for (const [name, table] of tables) {
    const asked: string[] = [];
    const chains = new KernelChains(table, { family, setName }, (chain) => {
      asked.push(chain);
      return undefined;
    });
    const reached = [...saved.get(name)!].filter(([, { builtIn }]) => builtIn).map(([chain]) => chain);
    for (const chain of reached) {
      const { rules, ...printed } = saved.get(name)!.get(chain)!;
      const found = chains.get(chain)!;
      expect({
        chain,
        ...found,
        rules: found.rules.map((rule) => typeof rule !== 'string' && comparable(rule)),
      }).toEqual({
        chain,
        ...printed,
        rules: rules.map((rule) => comparable(parseRule(rule))),
      });
      const jumps = rules.map((rule) => parseRule(rule).target?.name ?? '');
      reached.push(...jumps.filter((to) => saved.get(name)!.has(to) && !reached.includes(to)));
      count += rules.length;
    }
    expect(asked, 'nothing had to be printed').toEqual([]);
  }
  return count;
}

/** Every match and target that is not an expression of nf_tables; tells how many. */
function readNft(
  node: TestNamespace,
  family: IpFamily,
  saved: ReadonlyMap<string, SavedTable>,
  setName: SetNames,
): number {
  const nft = inNetns(node.path, () => Nftables.open());
  let count = 0;
  for (const [table, chains] of saved) {
    for (const [chain, { rules: texts }] of chains) {
      const rules = nft.listRules({ kind: 'chain', family: nftFamily(family), table, name: chain });
      expect(rules.length).toBe(texts.length);
      for (const [index, { expressions }] of rules.entries()) {
        const { matches, target } = comparable(parseRule(texts[index]!));
        for (const expression of expressions) {
          expect(expression.kind, texts[index]).not.toBe('unknown');
          if (expression.kind === 'match') {
            const read = decodeMatch(expression, { family, setName });
            expect(matches, `${expression.name} in ${texts[index]}`).toContainEqual(read && comparableMatch(read));
          } else if (expression.kind === 'target') {
            const read = decodeTarget(expression, { family, setName });
            expect(read && { ...comparableTarget(read), goto: false }, texts[index]).toEqual(target);
          } else continue;
          count++;
        }
      }
    }
  }
  nft.close();
  return count;
}

/** The sets and counters that rules ask for; tells the names of sets. */
function makeSets(node: TestNamespace, family: IpFamily): SetNames {
  const inet = family === 'IPv4' ? 'inet' : 'inet6';
  node.run('ipset', 'create', 'one', 'hash:ip', 'family', inet);
  node.run('ipset', 'create', 'two', 'hash:ip,port', 'family', inet);
  node.run('ipset', 'create', 'marks', 'hash:ip,port', 'family', inet, 'skbinfo');
  const netlink = inNetns(node.path, () => Netlink.open(NETLINK_NETFILTER));
  for (const counter of ['ct_state_invalid_dropped_pkts', 'localhost_nps_accepted_pkts']) {
    ensureAccounting(netlink, counter);
  }
  return (index) => getSetName(netlink, index);
}

it.each(['IPv4', 'IPv6'] as const)('of %s a chain is printed where something of it is not read', async (family) => {
  useOwnLockFile();
  const node = createNamespace('node');
  const rules = [
    ['INPUT', '-p tcp -j SOME'],
    ['INPUT', '-p udp -g OTHERS'],
    ['SOME', '-m hashlimit --hashlimit-upto 5/sec --hashlimit-burst 5 --hashlimit-name x -j OTHERS'],
    ['OTHERS', '-j DROP'],
  ];
  const lines = rules.map(([chain, rule]) => `-A ${chain} ${rule}`);
  const input = ['*filter', ':SOME -', ':OTHERS -', ...lines, 'COMMIT', ''].join('\n');
  const restored = await execIn(node)(programName(family, 'legacy', 'restore'), [], { input });
  expect(restored, restored.stderr).toMatchObject({ status: 0 });
  const table = inNetns(node.path, () => readLegacyTable(family, 'filter'));
  const context = { family, setName: () => undefined };
  const asked: string[] = [];
  const printed = rules.filter(([chain]) => chain === 'SOME').map(([, rule]) => rule!);
  const chains = new KernelChains(table, context, (chain) => {
    asked.push(chain);
    return printed;
  });
  expect(chains.get('SOME'), 'nobody has come to it yet').toBeUndefined();
  for (const chain of ['INPUT', 'SOME', 'OTHERS'])
    expect(chains.get(chain)!.rules).toHaveLength(chain === 'INPUT' ? 2 : 1);
  expect(asked).toEqual(['SOME']);
  expect(chains.get('SOME')!.rules).toBe(printed);
  // Without a program it is none that anybody knows.
  const alone = new KernelChains(table, context, () => undefined);
  alone.get('INPUT');
  expect(alone.get('SOME')!.rules).toMatchObject([
    { matches: [{ name: expect.stringMatching(/^hashlimit \(revision \d\)$/) }], target: { name: 'OTHERS' } },
  ]);
});
