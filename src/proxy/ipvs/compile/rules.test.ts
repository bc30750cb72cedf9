import { describe, expect, it } from 'vitest';
import { FakeIptables } from '../../../../test/fakes/fake-iptables.ts';
import { sampleNode } from '../../../../test/samples/sample-plan.ts';
import { atOnce, parseCidr, parseIp } from '../../../core/index.ts';
import { type IptablesTool, parseSave, type TableRestore, writeRestore } from '../../rules/index.ts';
import { planRuleCleanup, planTakeover, ruleDrift } from '../kernel/rules-state.ts';
import { fixedRules } from './rules.ts';

const node = sampleNode({ localDetector: { kind: 'cidr', cidr: parseCidr('10.244.0.0/16') } });
const rules = fixedRules('IPv4', node);

const BUILT_IN = [':INPUT', ':FORWARD', ':OUTPUT', ':PREROUTING', ':POSTROUTING'].map((name) => `${name} ACCEPT [0:0]`);
/** What iptables-save prints of `tables`: chains and rules by table, the built-in chains added. */
const save = (tables: Record<string, readonly string[]>) =>
  atOnce(
    parseSave(
      Object.entries(tables)
        .flatMap(([table, lines]) => [`*${table}`, ...BUILT_IN, ...lines])
        .join('\n'),
    ),
  );
/** What iptables-save prints once `tables` were restored into empty tables. */
const restored = (tables: readonly TableRestore[]) => {
  const iptables = new FakeIptables();
  iptables.restoreAsOther('IPv4', 'nft', [...writeRestore(tables)].join(''));
  return atOnce(parseSave(iptables.dump()));
};

describe('the rules of a node', () => {
  it('depend on how pods are told from others', () => {
    const masquerading = (overrides: Parameters<typeof sampleNode>[0]) =>
      fixedRules('IPv4', sampleNode(overrides)).chains.nat.get('KUBE-SERVICES')![2];
    expect(masquerading({ localDetector: node.localDetector })).toBe(
      '! -s 10.244.0.0/16 -m set --match-set KUBE-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ',
    );
    expect(masquerading({ localDetector: { kind: 'bridge', interfaceName: 'cni0' } })).toContain('! -i cni0');
    expect(masquerading({})).toBe('-m set --match-set KUBE-CLUSTER-IP src,dst -j KUBE-MARK-MASQ');
    expect(masquerading({ masqueradeAll: true })).toBe('-m set --match-set KUBE-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ');
  });

  it('lead NodePorts in at the addresses given, loopback ones excepted', () => {
    const addresses = [parseIp('127.0.0.1'), parseIp('192.168.0.7')];
    const chain = fixedRules('IPv4', sampleNode({ nodePortAddresses: addresses })).chains.nat.get('KUBE-SERVICES')!;
    expect(chain.filter((rule) => rule.endsWith('KUBE-NODE-PORT'))).toEqual(['-d 192.168.0.7/32 -j KUBE-NODE-PORT']);
  });

  it('lead only to chains and sets there are', () => {
    for (const family of ['IPv4', 'IPv6'] as const) {
      const { chains, jumps } = fixedRules(family, sampleNode());
      for (const [table, byName] of Object.entries(chains)) {
        const all = [...byName.values()]
          .flat()
          .concat(jumps.flatMap((jump) => (jump.table === table ? jump.rule : [])));
        for (const rule of all) {
          const target = /-j (KUBE-\S+)/.exec(rule)?.[1];
          if (target) expect([...byName.keys()]).toContain(target);
          if (family === 'IPv6') expect(rule).not.toMatch(/set KUBE-(?!6-)/);
        }
      }
    }
  });
});

describe('taking over', () => {
  it('has nothing to do where all is there', () => {
    const first = planTakeover(rules, save({}));
    expect(planTakeover(rules, restored(first))).toEqual([]);
  });

  it('leaves one of each jump', async () => {
    const saved = new Map(restored(planTakeover(rules, save({}))));
    const jump = rules.jumps.find(({ table }) => table === 'nat')!;
    const chains = new Map(saved.get('nat'));
    const chain = chains.get(jump.chain)!;
    saved.set('nat', chains.set(jump.chain, { ...chain, rules: [jump.rule, ...chain.rules, jump.rule] }));
    const copy = { chain: jump.chain, rule: jump.rule };
    expect(planTakeover(rules, saved)).toMatchObject([{ table: 'nat', insert: [], withdraw: [copy, copy] }]);
    const tool = { save: async (table: string) => saved.get(table) ?? new Map() } as unknown as IptablesTool;
    const theirs = [`-A ${jump.chain} ${jump.rule}`];
    const told = { object: expect.stringMatching(/^jump nat /), difference: 'unexpected', ours: [], theirs };
    expect(await ruleDrift(tool, rules)).toEqual([told, told]);
  });

  it('takes away what a proxy in iptables mode had, and nobody else’s', () => {
    const saved = save({
      filter: [
        ':KUBE-SERVICES - [0:0]',
        ':KUBE-FIREWALL - [0:0]',
        '-A INPUT -j KUBE-FIREWALL',
        '-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
        '-A FORWARD -p tcp -j ACCEPT',
      ],
      nat: [
        ':KUBE-SERVICES - [0:0]',
        ':KUBE-SVC-AAAA - [0:0]',
        ':KUBE-SEP-BBBB - [0:0]',
        ':THIRD - [0:0]',
        '-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SVC-AAAA',
        '-A KUBE-SEP-BBBB -j KUBE-MARK-MASQ',
        '-A THIRD -j KUBE-SEP-BBBB',
        '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
      ],
    });
    const [filter, , nat] = planTakeover(rules, saved);
    expect(filter!.remove).toEqual(['KUBE-SERVICES']);
    expect(filter!.withdraw).toEqual([
      {
        chain: 'FORWARD',
        rule: '-m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
      },
    ]);
    expect(nat!.remove).toEqual(['KUBE-SVC-AAAA']);
    expect(nat!.write.get('KUBE-SEP-BBBB')!.rules).toEqual([]);
    expect(nat!.withdraw).toEqual([]);
    expect(nat!.insert.map(({ chain }) => chain)).toEqual(['OUTPUT', 'POSTROUTING']);
  });
});

describe('cleaning up', () => {
  it('takes away all chains and jumps', () => {
    const saved = restored(planTakeover(rules, save({})));
    const cleanup = planRuleCleanup(saved);
    for (const table of cleanup) {
      expect([...table.remove].sort()).toEqual([...rules.chains[table.table as 'nat'].keys()].sort());
      expect(table.write.size).toBe(0);
    }
    expect(cleanup.reduce((sum, { withdraw }) => sum + withdraw.length, 0)).toBe(rules.jumps.length);
    expect(planRuleCleanup(save({ filter: ['-A INPUT -j ACCEPT'] }))).toEqual([]);
  });

  it('leaves what a proxy in iptables mode shares, while that one is in force', () => {
    const saved = save({
      filter: [
        ':KUBE-FORWARD - [0:0]',
        ':KUBE-PROXY-FIREWALL - [0:0]',
        ':KUBE-IPVS-FILTER - [0:0]',
        '-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD',
        '-A INPUT -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL',
        '-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL',
        '-A INPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER',
      ],
      nat: [
        ':KUBE-SERVICES - [0:0]',
        ':KUBE-LOAD-BALANCER - [0:0]',
        ':KUBE-POSTROUTING - [0:0]',
        '-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SVC-AAAA',
        '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
      ],
    });
    const [filter, nat] = planRuleCleanup(saved);
    expect(filter!.remove).toEqual(['KUBE-IPVS-FILTER']);
    expect(filter!.withdraw.map(({ rule }) => rule)).toEqual([
      '-m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL',
      '-m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER',
    ]);
    expect(nat!.remove).toEqual(['KUBE-LOAD-BALANCER']);
    expect(nat!.withdraw).toEqual([]);
  });
});
