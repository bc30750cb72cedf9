import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inNetns, legacyForwardRefuses } from '../../../src/sys/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';

let namespace: TestNamespace;
beforeEach(() => {
  namespace = createNamespace('node');
});
afterEach(removeAll);

const FAMILIES = [
  ['IPv4', 'iptables-legacy', '10.0.0.0/8'],
  ['IPv6', 'ip6tables-legacy', 'fd00::/8'],
] as const;

describe.each(FAMILIES)('chain FORWARD of legacy iptables, %s', (family, program, block) => {
  const iptables = (...args: string[]) => namespace.run(program, ...args);
  const refuses = () => inNetns(namespace.path, () => legacyForwardRefuses(family));

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
    iptables('-A', 'FORWARD', '-s', block, '-j', 'ACCEPT');
    expect(refuses()).toBe(true);
    iptables('-P', 'FORWARD', 'ACCEPT');
    expect(refuses()).toBe(false);
  });

  it('refuses it by a rule for every packet, and not by one for some', () => {
    iptables('-A', 'FORWARD', '-s', block, '-j', 'DROP');
    iptables('-A', 'FORWARD', '-i', 'eth0', '-j', 'REJECT');
    iptables('-A', 'FORWARD', '-m', 'mark', '--mark', '1', '-j', 'DROP');
    iptables('-A', 'FORWARD', '-j', 'ACCEPT');
    expect(refuses()).toBe(false);
    for (const target of ['DROP', 'REJECT']) {
      iptables('-A', 'FORWARD', '-j', target);
      expect(refuses(), target).toBe(true);
      iptables('-D', 'FORWARD', '-j', target);
    }
    expect(refuses()).toBe(false);
  });
});

it('leaves no descriptor open', () => {
  namespace.run('iptables-legacy', '-P', 'FORWARD', 'DROP');
  const open = () => readdirSync('/proc/self/fd').length;
  inNetns(namespace.path, () => legacyForwardRefuses('IPv4'));
  const before = open();
  for (let i = 0; i < 50; i++) inNetns(namespace.path, () => legacyForwardRefuses('IPv4'));
  expect(open()).toBe(before);
});
