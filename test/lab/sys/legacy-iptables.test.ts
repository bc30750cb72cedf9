import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadReassertion } from '../../../src/cni/index.ts';
import { parseCidr } from '../../../src/core/index.ts';
import { closing } from '../../../src/netlink/index.ts';
import { Nftables } from '../../../src/netlink/nftables/index.ts';
import { inNetns, legacyTableInUse } from '../../../src/sys/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';

let namespace: TestNamespace;
beforeEach(() => {
  namespace = createNamespace('node');
});
afterEach(removeAll);

const FAMILIES = [
  ['IPv4', 'iptables-legacy', '10.0.0.0/8', '10.244.1.0/24'],
  ['IPv6', 'ip6tables-legacy', 'fd00::/8', 'fd00:10:244:1::/64'],
] as const;
const { obstaclesOf } = await loadReassertion();

describe.each(FAMILIES)('chain FORWARD of legacy iptables, %s', (family, program, block, pods) => {
  const iptables = (...args: string[]) => namespace.run(program, ...args);
  const passing = (['from', 'to'] as const).map((direction) => ({ direction, subnet: parseCidr(pods), link: 'cni0' }));
  /** Whether it is told of pods. */
  const refuses = () =>
    inNetns(namespace.path, () => closing(Nftables.open(), (nft) => obstaclesOf(nft, { passing })!.length > 0));

  it('refuses nothing where nobody has used it, and is not made by the question', () => {
    expect(refuses()).toBe(false);
    const names = program === 'iptables-legacy' ? 'ip_tables_names' : 'ip6_tables_names';
    expect(namespace.run('cat', `/proc/net/${names}`)).not.toContain('filter');
  });

  it('refuses what it does not accept by its policy', () => {
    iptables('-A', 'INPUT', '-j', 'DROP');
    iptables('-N', 'OTHER');
    iptables('-A', 'OTHER', '-j', 'DROP');
    expect(refuses()).toBe(false);
    iptables('-P', 'FORWARD', 'DROP');
    expect(refuses()).toBe(true);
    iptables('-A', 'FORWARD', '-s', block, '-p', 'tcp', '-j', 'ACCEPT');
    expect(refuses()).toBe(true);
    iptables('-P', 'FORWARD', 'ACCEPT');
    expect(refuses()).toBe(false);
  });

  it.each([
    ['by their addresses', ['-s', block], ['-d', block]],
    ['by the interface', ['-i', 'cni0'], ['-o', 'cni+']],
    ['by all but others', ['!', '-s', family === 'IPv4' ? '192.0.2.0/24' : '2001:db8::/32'], ['!', '-o', 'eth0']],
  ])('refuses nothing of pods that it lets through both ways %s, by a chain too', (_, from, to) => {
    iptables('-P', 'FORWARD', 'DROP');
    iptables('-N', 'site');
    iptables('-A', 'FORWARD', '-m', 'comment', '--comment', 'of the site', '-j', 'site');
    iptables('-A', 'site', '-p', 'tcp', '--dport', '25', '-j', 'DROP');
    iptables('-A', 'site', ...from, '-j', 'ACCEPT');
    expect(refuses()).toBe(true);
    iptables('-A', 'site', ...to, '-j', 'ACCEPT');
    expect(refuses()).toBe(false);
    iptables('-I', 'FORWARD', '-i', 'cni0', '-j', 'DROP');
    expect(refuses()).toBe(true);
  });

  it('refuses it by a rule for every packet, and not by one for some', () => {
    iptables('-A', 'FORWARD', '-p', 'udp', '-s', block, '-j', 'DROP');
    iptables('-A', 'FORWARD', '-i', 'eth0', '-j', 'REJECT');
    iptables('-A', 'FORWARD', '-m', 'mark', '--mark', '1', '-j', 'DROP');
    iptables('-A', 'FORWARD', '-j', 'ACCEPT');
    expect(refuses()).toBe(false);
    for (const target of ['DROP', 'REJECT']) {
      iptables('-I', 'FORWARD', '-j', target);
      expect(refuses(), target).toBe(true);
      iptables('-D', 'FORWARD', '-j', target);
    }
    expect(refuses()).toBe(false);
  });
});

it('leaves no descriptor open', () => {
  namespace.run('iptables-legacy', '-P', 'FORWARD', 'DROP');
  const open = () => readdirSync('/proc/self/fd').length;
  const look = () => inNetns(namespace.path, () => legacyTableInUse('IPv4', 'filter', 100_000));
  expect(look()).toBeDefined();
  const before = open();
  for (let i = 0; i < 50; i++) look();
  expect(open()).toBe(before);
});

it('is not read where it is larger than asked for', () => {
  namespace.run('iptables-legacy', '-P', 'FORWARD', 'DROP');
  expect(inNetns(namespace.path, () => legacyTableInUse('IPv4', 'filter', 100))).toBeUndefined();
});
