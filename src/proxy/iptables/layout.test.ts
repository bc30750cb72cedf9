import { describe, expect, it } from 'vitest';
import { type Packet, type Walk, walkPacket } from '../../../test/fakes/packet-walk.ts';
import { completePlan } from '../../../test/samples/complete-plan.ts';
import { randomChanges } from '../../../test/samples/random-plan.ts';
import { sampleNode, samplePort } from '../../../test/samples/sample-plan.ts';
import { atOnce, formatIp, type IpFamily, protocolWord } from '../../core/index.ts';
import type { Endpoint, NodePlan, ServicePortPlan } from '../index.ts';
import { applyDiff, emptyChainSet, TABLES, type Table } from '../rules/index.ts';
import { Layout } from './layout.ts';
import { planChanges } from './transaction.ts';

/** A layout and what its edits so far add up to. */
function follow(family: IpFamily, node: NodePlan) {
  const layout = new Layout({ family, node, dropInvalid: true, accounting: false });
  const chains = emptyChainSet();
  /** By table and chain, as far as they were walked since the last change. */
  const rules = new Map<Table, ReadonlyMap<string, readonly string[]>>();
  const rulesOf = (table: Table) => {
    const known = rules.get(table) ?? new Map([...chains[table]].map(([name, chain]) => [name, chain.rules]));
    rules.set(table, known);
    return known;
  };
  const settle = () => {
    rules.clear();
    const changes = atOnce(planChanges(chains, atOnce(layout.takeEdits())));
    for (const change of changes) atOnce(applyDiff(chains[change.table], change));
    return changes;
  };
  const walk = (table: Table, entry: string, packet: Packet): Walk => walkPacket(rulesOf(table), entry, packet);
  return { layout, chains, settle, walk };
}

function rulesetOf(family: IpFamily, node: NodePlan, ports: Iterable<ServicePortPlan>) {
  const result = follow(family, node);
  for (const port of ports) atOnce(result.layout.upsert(port));
  result.settle();
  return result;
}

const keys = (endpoints: readonly Endpoint[]) => endpoints.map(({ key }) => key);
const NODE_IP = '192.168.0.7';
const POD = '10.244.5.5';
const STRANGER = '198.51.100.9';

describe('Layout', () => {
  it.each(['IPv4', 'IPv6'] as const)('depends on the plan alone, whatever led there: %s', (family) => {
    const { node } = completePlan(family);
    const incremental = follow(family, node);
    const ports = new Map<string, ServicePortPlan>();
    for (const { upserted, removed } of randomChanges(family, 600, ports)) {
      for (const port of removed) incremental.layout.remove(port.key);
      for (const port of upserted) atOnce(incremental.layout.upsert(port));
      incremental.settle();
    }
    const fresh = rulesetOf(family, node, [...ports.values()].reverse());
    expect(ports.size).toBeGreaterThan(100);
    for (const table of TABLES) {
      expect(new Map([...incremental.chains[table]].sort())).toEqual(new Map([...fresh.chains[table]].sort()));
    }
  });

  it('never refers to a chain that is not there, nor keeps one nobody refers to', () => {
    const { node } = completePlan('IPv4');
    const { layout, chains, settle } = follow('IPv4', node);
    const ports = new Map<string, ServicePortPlan>();
    for (const { upserted, removed } of randomChanges('IPv4', 300, ports, 11)) {
      for (const port of removed) layout.remove(port.key);
      for (const port of upserted) atOnce(layout.upsert(port));
      settle();
      for (const table of TABLES) {
        const rules = [...chains[table].values()].flatMap((chain) => chain.rules);
        const targets = new Set(rules.map((rule) => / -[jg] (KUBE-[\w./-]+)$/.exec(` ${rule}`)?.[1]));
        targets.delete(undefined);
        expect([...targets].filter((name) => !chains[table].has(name!))).toEqual([]);
        expect([...chains[table].keys()].filter((name) => name.length > 28)).toEqual([]);
        // Without a trace: what no rule leads to is an entry chain or belongs to a Service that lost its address.
        const trees = [...chains[table].keys()].filter((name) => /^KUBE-(VIP|NP|HP|XIP|XNP|LBF|HC)-/.test(name));
        expect(trees.filter((name) => !targets.has(name))).toEqual([]);
      }
    }
  });

  it('changes the chains of the Service at hand and few others', () => {
    const ports = new Map<string, ServicePortPlan>();
    for (const _ of randomChanges('IPv4', 600, ports));
    const { layout, settle } = rulesetOf('IPv4', sampleNode(), ports.values());
    const added = samplePort({ name: 'x/new', clusterIp: '10.96.7.7', remote: ['10.244.2.1:80'] });
    atOnce(layout.upsert(added));
    const written = settle().map(({ write, remove }) => [...write.keys(), ...remove]);
    expect(written[0]).toEqual([]);
    expect(written[1]!.length).toBeGreaterThan(1);
    expect(written[1]!.length).toBeLessThan(8);
    atOnce(layout.upsert(added));
    expect(settle().every(({ write, remove }) => write.size + remove.length === 0)).toBe(true);
  });
});

describe('a first packet', () => {
  const { node } = completePlan('IPv4', { nodePortAddresses: 'all' });
  const ports = new Map<string, ServicePortPlan>();
  for (const _ of randomChanges('IPv4', 500, ports, 3));
  const { walk } = rulesetOf('IPv4', node, ports.values());
  const nodeAddresses = [NODE_IP];
  const nat = (source: string, destination: string, port: ServicePortPlan, number: number) =>
    walk('nat', 'KUBE-SERVICES', {
      source,
      destination,
      nodeAddresses,
      protocol: protocolWord(port.protocol),
      port: number,
    });
  const filter = (entry: string, destination: string, port: ServicePortPlan, number: number) =>
    walk('filter', entry, {
      source: STRANGER,
      destination,
      nodeAddresses,
      protocol: protocolWord(port.protocol),
      port: number,
    }).verdict;
  const VERDICT = { forward: undefined, reject: 'REJECT', drop: 'DROP' } as const;

  // Claims by two Services are tested apart: here each address, protocol and port is looked at through its winner.
  const winners = (
    id: (port: ServicePortPlan) => string[],
    filterOut: (port: ServicePortPlan) => boolean = () => false,
  ) => {
    const first = new Map<string, ServicePortPlan>();
    for (const port of [...ports.values()].sort((a, b) => (a.key < b.key ? -1 : 1))) {
      if (filterOut(port)) continue;
      for (const each of id(port)) if (!first.has(each)) first.set(each, port);
    }
    return [...first].map(([each, port]) => [each.split(' ')[0]!, port] as const);
  };

  it('to a ClusterIP reaches the endpoints of the internal policy, masqueraded unless it is a pod’s', () => {
    for (const port of ports.values()) {
      const endpoints = port.internalPolicy === 'Local' ? port.localEndpoints : port.clusterEndpoints;
      const vip = formatIp(port.clusterIp);
      const expected = port.internalVerdict === 'forward' ? keys(endpoints) : [];
      expect(nat(POD, vip, port, port.port)).toMatchObject({ destinations: expected, masqueraded: false });
      const masqueraded = expected.length > 0;
      expect(nat(STRANGER, vip, port, port.port)).toMatchObject({ destinations: expected, masqueraded });
      expect(filter('KUBE-SERVICES', vip, port, port.port)).toBe(VERDICT[port.internalVerdict]);
      expect(nat(POD, vip, port, port.port + 10).destinations).toEqual([]);
    }
  });

  it('to a NodePort reaches the endpoints of the external policy, with the short cuts for pods and the node', () => {
    const claims = winners(
      (port) => (port.nodePort ? [`${port.nodePort} ${port.protocol}`] : []),
      (port) => !port.hasAnyEndpoints,
    );
    expect(claims.length).toBeGreaterThan(20);
    for (const [, port] of claims) {
      const local = port.externalPolicy === 'Local';
      const outside = local ? keys(port.localEndpoints) : keys(port.clusterEndpoints);
      const at = (source: string) => nat(source, NODE_IP, port, port.nodePort);
      expect(at(STRANGER)).toMatchObject({ destinations: outside, masqueraded: !local });
      expect(at(POD)).toMatchObject({ destinations: keys(port.clusterEndpoints), masqueraded: !local });
      expect(at(NODE_IP)).toMatchObject({ destinations: keys(port.clusterEndpoints), masqueraded: true });
      expect(nat(STRANGER, '192.168.0.8', port, port.nodePort).destinations).toEqual([]);
    }
    for (const [, port] of winners(
      (each) => (each.nodePort ? [`${each.nodePort} ${each.protocol}`] : []),
      (each) => each.externalVerdict === 'forward',
    )) {
      expect(filter('KUBE-EXTERNAL-SERVICES', NODE_IP, port, port.nodePort)).toBe(VERDICT[port.externalVerdict]);
    }
  });

  it('to a load-balancer address passes only from the source ranges', () => {
    const restricted = samplePort({
      name: 'lb/restricted',
      clusterIp: '10.96.99.1',
      loadBalancerVips: ['203.0.113.200'],
      sourceRanges: ['198.18.0.0/15', '192.168.0.0/24'],
      remote: ['10.244.2.1:80'],
    });
    const ruleset = rulesetOf('IPv4', node, [restricted]);
    const to = { destination: '203.0.113.200', protocol: 'tcp', port: 80, nodeAddresses } as const;
    const from = (source: string) => ruleset.walk('nat', 'KUBE-SERVICES', { source, ...to });
    for (const source of ['198.19.3.4', NODE_IP, '203.0.113.200']) {
      expect(from(source)).toMatchObject({ destinations: ['10.244.2.1:80'], masqueraded: true });
    }
    for (const source of [STRANGER, POD]) {
      expect(from(source)).toMatchObject({ destinations: [], masqueraded: false });
      expect(ruleset.walk('filter', 'KUBE-PROXY-FIREWALL', { source, ...to }).verdict).toBe('DROP');
    }
  });

  it('of a pod to itself is masqueraded, of one pod to another not', () => {
    const local = [...ports.values()].flatMap((port) => port.clusterEndpoints).filter(({ isLocal }) => isLocal);
    expect(local.length).toBeGreaterThan(50);
    for (const { ip } of local) {
      const to = { destination: formatIp(ip), protocol: 'tcp', port: 8080 } as const;
      expect(walk('nat', 'KUBE-POSTROUTING', { source: formatIp(ip), ...to }).masqueraded).toBe(true);
      const other = walk('nat', 'KUBE-POSTROUTING', { source: POD, ...to });
      // It does not come back from the search, to the rules for what carries the mark.
      expect(other).toMatchObject({ masqueraded: false, verdict: undefined });
    }
  });

  it('of a pod of another node to itself is masqueraded too', () => {
    const self = { source: '10.244.9.1', destination: '10.244.9.1', protocol: 'tcp', port: 80 } as const;
    expect(walk('nat', 'KUBE-POSTROUTING', self).masqueraded).toBe(true);
  });

  it('leaves postrouting by its first rule on the way from pods of this node elsewhere, by its second from the node', () => {
    const postrouting = (source: string, destination: string) =>
      walk('nat', 'KUBE-POSTROUTING', { source, destination, protocol: 'tcp', port: 80 });
    const own = '10.244.1.10';
    expect(postrouting(own, '10.244.2.10')).toMatchObject({ met: 1, masqueraded: false });
    expect(postrouting(NODE_IP, '10.244.2.10')).toMatchObject({ met: 2, masqueraded: false });
    expect(postrouting(own, '10.244.1.11')).toMatchObject({ masqueraded: false });
    for (const self of [own, NODE_IP]) expect(postrouting(self, self).masqueraded).toBe(true);
  });

  it('of the node to itself by loopback, redirected by somebody else, is left alone', () => {
    const self = { source: '127.0.0.1', destination: '127.0.0.1', protocol: 'tcp', port: 80 } as const;
    expect(walk('nat', 'KUBE-POSTROUTING', self).masqueraded).toBe(false);
  });

  it('meets few rules, of thousands of Services', () => {
    const many = Array.from({ length: 5000 }, (_, n) =>
      samplePort({
        name: `n/${n}`,
        clusterIp: `10.96.${n >> 8}.${n & 255}`,
        nodePort: 25000 + n,
        remote: ['10.1.1.1:1'],
      }),
    );
    const ruleset = rulesetOf('IPv4', node, many);
    const met = many
      .filter((_, n) => n % 50 === 0)
      .map((port) => {
        const packet = { source: POD, protocol: 'tcp', nodeAddresses } as const;
        const vip = ruleset.walk('nat', 'KUBE-SERVICES', {
          ...packet,
          destination: formatIp(port.clusterIp),
          port: 80,
        });
        const np = ruleset.walk('nat', 'KUBE-SERVICES', { ...packet, destination: NODE_IP, port: port.nodePort });
        expect([...vip.destinations, ...np.destinations]).toEqual(['10.1.1.1:1', '10.1.1.1:1']);
        return [vip.met, np.met] as const;
      });
    const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    expect(mean(met.map(([vip]) => vip))).toBeLessThan(18);
    expect(mean(met.map(([, np]) => np))).toBeLessThan(25);
  });
});
