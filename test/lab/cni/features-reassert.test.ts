import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadReassertion, loadRemoval } from '../../../src/cni/index.ts';
import { Nftables } from '../../../src/netlink/nftables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { removeAll } from '../namespace.ts';
import { createFeatureWorld, type FeaturePod, type FeatureWorld, linesOf, mapping } from './feature-world.ts';

const { compareFeatures, featuresOf, reassertFeatures } = await loadReassertion();
const { removeFeatures } = await loadRemoval();

const NET = { ipMasq: true, firewall: true, ...mapping({ hostPort: 8080, containerPort: 80 }) };

let world: FeatureWorld;
let pod: FeaturePod;
let ruleset: Nftables;

beforeEach(async () => {
  world = createFeatureWorld();
  await world.outside.serve({ port: 80 });
  pod = await world.addPod('web', NET);
  await pod.serve({ port: 80 });
  ruleset = inNetns(world.node.namespace.path, () => Nftables.open());
});

afterEach(() => {
  ruleset?.close();
  removeAll();
});

async function works(): Promise<readonly [string, string]> {
  const inwards = await world.outside.connect({ ip: '192.0.2.1', port: 8080 });
  const outwards = await pod.connect({ ip: '192.0.2.2', port: 80 });
  return [inwards.kind, outwards.kind];
}

describe('reassertFeatures', () => {
  it('changes nothing while all is there', async () => {
    const before = ruleset.generation();
    expect(reassertFeatures(ruleset, featuresOf(world.wanted()))).toEqual({
      structureRepaired: false,
      elementsAdded: 0,
      admissionRepaired: false,
      jump: 'in place',
      conflicts: [],
    });
    expect(ruleset.generation()).toBe(before);
  });

  it('brings all back after an outside flush of the ruleset', async () => {
    const table = linesOf(world.table());
    expect(await works()).toEqual(['answered', 'answered']);
    world.node.namespace.run('nft', 'flush', 'ruleset');
    expect(await works()).toEqual(['refused', 'timeout']);
    const repaired = reassertFeatures(ruleset, featuresOf(world.wanted()));
    expect(repaired).toMatchObject({ structureRepaired: true, elementsAdded: 7, conflicts: [] });
    expect(await works()).toEqual(['answered', 'answered']);
    expect(linesOf(world.table())).toEqual(table);
    await world.del(pod);
    expect(world.table()).not.toContain(pod.namespace.name);
  });

  it('brings it back for all pods, without being told their configuration', async () => {
    world.node.namespace.run('iptables-nft', '-P', 'FORWARD', 'DROP');
    const second = await world.addPod('second', { ...NET, ...mapping({ hostPort: 8081, containerPort: 80 }) });
    const table = linesOf(world.table());
    world.node.namespace.run('nft', 'flush', 'ruleset');
    world.node.namespace.run('iptables-nft', '-P', 'FORWARD', 'DROP');
    expect(await works()).toEqual(['refused', 'timeout']);
    expect(reassertFeatures(ruleset, featuresOf(world.wanted()))).toEqual({
      structureRepaired: true,
      elementsAdded: 14,
      admissionRepaired: true,
      jump: 'in place',
      conflicts: [],
    });
    expect(await works()).toEqual(['answered', 'answered']);
    expect(linesOf(world.table())).toEqual(table);
    await world.del(second, NET);
    await world.del(pod, NET);
    expect(world.wanted()).toEqual([]);
    expect(world.node.namespace.run('iptables-nft', '-S')).not.toContain('NODEPLANE');
    expect(world.table()).not.toMatch(/comment "veth/);
  });

  it('brings back what is missing of it, and says what somebody else has', async () => {
    const { namespace } = world.node;
    const table = 'inet nodeplane-cni'.split(' ');
    namespace.run('nft', 'delete', 'element', ...table, 'ports-ipv4', '{ tcp . 8080 }');
    namespace.run('nft', 'delete', 'element', ...table, 'ports-ipv6', '{ tcp . 8080 }');
    namespace.run('nft', 'add', 'element', ...table, 'ports-ipv6', '{ tcp . 8080 comment "mine" : fd00::1 . 80 }');
    expect(reassertFeatures(ruleset, featuresOf(world.wanted()))).toMatchObject({
      structureRepaired: false,
      elementsAdded: 1,
      conflicts: [
        expect.stringMatching(/^An element of set "ports-ipv6" of attachment "net.* is held by somebody else/),
      ],
    });
    expect((await works())[0]).toBe('answered');
  });

  it.each([
    ['whose table sleeps', 'add table TABLE { flags dormant; }', 1],
    [
      'whose chain is elsewhere',
      'delete chain TABLE PRE; add chain TABLE PRE { type filter hook input priority 7; }',
      1,
    ],
    [
      'whose table sleeps with a chain elsewhere',
      'add table TABLE { flags dormant; } & delete chain TABLE PRE; add chain TABLE PRE { type filter hook input priority 7; }',
      2,
    ],
    ['whose table sleeps without a chain', 'add table TABLE { flags dormant; }; delete chain TABLE PRE', 1],
  ])('brings back rules %s', async (_, destroy, times) => {
    const { namespace } = world.node;
    const table = linesOf(world.table());
    const chain = /chain (\S+) \{\s*type nat hook prerouting/.exec(world.table())![1]!;
    const commits = destroy.replaceAll('TABLE', 'inet nodeplane-cni').replaceAll('PRE', chain).split(' & ');
    for (const commit of commits) namespace.run('nft', commit);
    expect((await works())[0]).not.toBe('answered');
    for (let time = 0; time < times; time++) {
      expect(reassertFeatures(ruleset, featuresOf(world.wanted()))).toMatchObject({ structureRepaired: true });
    }
    expect(await works()).toEqual(['answered', 'answered']);
    expect(linesOf(world.table()).sort()).toEqual(table.sort());
    expect(reassertFeatures(ruleset, featuresOf(world.wanted()))).toMatchObject({ structureRepaired: false });
  });

  it("brings back the passage through iptables' FORWARD", async () => {
    world.node.namespace.run('iptables-nft', '-P', 'FORWARD', 'DROP');
    expect(await works()).toEqual(['timeout', 'timeout']);
    expect(reassertFeatures(ruleset, featuresOf(world.wanted()))).toMatchObject({
      admissionRepaired: true,
      elementsAdded: 0,
    });
    expect(await works()).toEqual(['answered', 'answered']);
  });
});

describe('a jump that others put a rule behind', () => {
  const forward = () => world.node.namespace.run('iptables-nft', '-S', 'FORWARD').trim().split('\n').slice(1);
  const OURS = expect.stringContaining('-j NODEPLANE-FORWARD');
  const DENIAL = expect.stringContaining('--dport 80 -j DROP');

  beforeEach(() => {
    const run = (rule: string) => world.node.namespace.run('iptables-nft', ...rule.split(' '));
    run('-P FORWARD DROP');
    reassertFeatures(ruleset, featuresOf(world.wanted()));
    run('-A FORWARD -d 192.0.2.2 -p tcp --dport 80 -j DROP');
    expect(forward()).toEqual([OURS, DENIAL]);
  });

  it('is moved behind it, so that what others refuse is refused, and differs until then', async () => {
    const wanted = featuresOf(world.wanted());
    expect((await works())[1]).toBe('answered');
    expect(await compareFeatures(ruleset, wanted)).toEqual([
      expect.objectContaining({ object: 'rule of chain ip filter FORWARD', difference: 'unexpected' }),
      expect.objectContaining({ object: 'rule of chain ip filter FORWARD', difference: 'missing' }),
    ]);
    expect(reassertFeatures(ruleset, wanted, undefined, { movesJump: false }).jump).toBe('left');
    expect(forward()).toEqual([OURS, DENIAL]);
    const before = ruleset.generation();
    expect(reassertFeatures(ruleset, wanted)).toMatchObject({ jump: 'moved', admissionRepaired: false });
    expect(ruleset.generation()).toBe(before + 1);
    expect(forward()).toEqual([DENIAL, OURS]);
    expect(await works()).toEqual(['answered', 'timeout']);
    expect(await compareFeatures(ruleset, wanted)).toEqual([]);
  });

  it('does not wait where what comes before it refuses all', async () => {
    world.node.namespace.run('iptables-nft', '-I', 'FORWARD', '-j', 'REJECT');
    expect((await works())[1]).not.toBe('answered');
    const { jump } = reassertFeatures(ruleset, featuresOf(world.wanted()), undefined, { movesJump: false });
    expect(jump).toBe('moved');
    expect((await works())[1]).toBe('answered');
  });

  it('is moved by the next ADD, too, and is no reason for CHECK to fail', async () => {
    expect(await world.call('CHECK', pod.namespace, { ...NET, prevResult: pod.result })).toMatchObject({ status: 0 });
    await world.addPod('second', { ipMasq: true, firewall: true });
    expect(forward()).toEqual([DENIAL, OURS]);
  });
});

describe('removeFeatures', () => {
  it('leaves nothing of ours in nftables, and what is of others', async () => {
    world.node.namespace.run('iptables-nft', '-P', 'FORWARD', 'DROP');
    const before = world.node.namespace.run('iptables-nft', '-S');
    await world.addPod('second', { firewall: true });
    expect(removeFeatures(ruleset)).toEqual([
      'nftables table "inet nodeplane-cni": removed',
      'Rules in chain FORWARD of the IPv4 filter table: removed',
    ]);
    expect(world.table()).toBe('');
    expect(world.node.namespace.run('iptables-nft', '-S')).toBe(before);
    expect(removeFeatures(ruleset)).toEqual([]);
  });
});
