import { afterEach, expect, it } from 'vitest';
import { iptablesMode } from '../../../src/proxy/iptables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, removeAll } from '../namespace.ts';

afterEach(removeAll);

const FAMILIES = [
  ['IPv4', 'iptables'],
  ['IPv6', 'ip6tables'],
] as const;

it.each(FAMILIES)(
  'of %s, a variant whose tables nobody has used is told from one in use without running a program',
  (family, program) => {
    const namespace = createNamespace('node');
    const exec = () => Promise.reject(new Error('no program is to be run'));
    const inUse = () =>
      inNetns(namespace.path, () =>
        iptablesMode.traces(family, { exec }).map(({ name, isInUse }) => [name, isInUse?.()]),
      );
    const [nft, legacy] = [`iptables-nft ${family}`, `iptables-legacy ${family}`];
    const none = [
      [nft, false],
      [legacy, false],
    ];
    expect(inUse()).toEqual(none);
    // Others' tables of nf_tables are none of iptables'.
    namespace.run('nft', 'add', 'table', family === 'IPv4' ? 'ip' : 'ip6', 'others');
    expect(inUse()).toEqual(none);
    namespace.run(`${program}-nft`, '-t', 'nat', '-N', 'KUBE-SERVICES');
    expect(inUse()).toEqual([
      [nft, true],
      [legacy, false],
    ]);
    namespace.run(`${program}-legacy`, '-t', 'mangle', '-N', 'KUBE-PROXY-CANARY');
    expect(inUse()).toEqual([
      [nft, true],
      [legacy, true],
    ]);
  },
);
