import { expect, it } from 'vitest';
import { parseIp } from '../../core/index.ts';
import {
  counter,
  drop,
  type Expression,
  immediate,
  lookup,
  type NftRule,
  random,
  setPayload,
} from '../../netlink/nftables/index.ts';
import { type Host, walkPacket } from '../walk/index.ts';
import { NftRules } from './nft-rules.ts';
import type { Rules } from './surroundings.ts';

const ETH0 = { index: 2, name: 'eth0' };
const RTN_LOCAL = 2;
const HOST: Host = {
  addressType: () => RTN_LOCAL,
  interfaceTo: () => ETH0,
  addressOn: () => undefined,
  redirectedTo: () => undefined,
};
const CHAIN = { kind: 'chain', family: 'ip', table: 'filter', name: 'INPUT' } as const;

/** The structs of <linux/netfilter/xt_tcpudp.h>, xt_statistic.h, ipt_ttl.h and ipt_REJECT.h, in host byte order. */
const blob = (kind: 'match' | 'target', name: string, revision: number, hex: string): Expression => ({
  kind,
  name,
  revision,
  info: Buffer.from(hex, 'hex'),
});
const DPORT_80 = blob('match', 'tcp', 0, '0000ffff500050000000000000000000');
const DPORT_81 = blob('match', 'tcp', 0, '0000ffff510051000000000000000000');
const HALF = blob('match', 'statistic', 0, '000000000000004000000000000000000000000000000000');
const TTL = blob('match', 'ttl', 0, '023f000000000000');
const REJECT = blob('target', 'REJECT', 0, '0700000000000000');

/** How a packet to port 80 ends in a chain with one rule, and what decides. */
function ends(expressions: readonly Expression[], text?: string, table = 'filter') {
  const rule: NftRule = { kind: 'rule', family: 'ip', table, chain: 'INPUT', expressions };
  const asked: string[] = [];
  const rules: Rules = {
    baseChains: (hook) => (hook === 'input' ? [{ ...CHAIN, table, base: { type: 'filter', hook, priority: 0 } }] : []),
    rulesOf: () => [rule],
    getSet: () => undefined,
    getElement: () => undefined,
    textsOf({ name }) {
      asked.push(name);
      return text === undefined ? undefined : [text];
    },
    hasChain: () => false,
  };
  const question = { protocol: 'tcp', destinationPort: 80 } as const;
  const { branches } = walkPacket(
    { ...question, source: parseIp('10.0.0.1'), destination: parseIp('10.0.0.2') },
    { origin: ETH0, sources: [new NftRules(rules)], host: HOST },
  );
  const kinds = branches.map(({ result }) => result.end.kind);
  const refusals = branches.flatMap(({ result: { end } }) => (end.kind === 'reject' ? [end.how] : []));
  const about = branches.flatMap(({ choices }) => choices.map((choice) => `${choice.kind}: ${choice.about}`));
  return { kinds, about: [...new Set(about)], asked: [...new Set(asked)], ...(refusals.length > 0 && { refusals }) };
}

it('evaluates matches and targets of x_tables, without asking a program', () => {
  expect(ends([DPORT_80, counter, drop])).toEqual({ kinds: ['drop'], about: [], asked: [] });
  expect(ends([DPORT_81, counter, drop])).toEqual({ kinds: ['delivered'], about: [], asked: [] });
  expect(ends([DPORT_80, counter, REJECT])).toEqual({
    kinds: ['reject'],
    about: [],
    asked: [],
    refusals: ['tcp-reset'],
  });
});

it.each([
  [{ kind: 'reject', type: 'tcp-reset' }, 'tcp reset'],
  [{ kind: 'reject', type: 'icmp', code: 3 }, 'icmp port-unreachable'],
  [{ kind: 'reject', type: 'icmpx', code: 3 }, 'icmpx admin-prohibited'],
  [{ kind: 'reject', type: 'icmp', code: 13 }, 'icmp 13'],
] as const)('says in the words of nft with what %j refuses', (reject, how) => {
  expect(ends([reject])).toMatchObject({ kinds: ['reject'], refusals: [how] });
});

it('walks both ways of a draw, but not where another match is false', () => {
  expect(ends([HALF, DPORT_80, drop])).toMatchObject({
    kinds: ['drop', 'delivered'],
    about: ['chance: -m statistic --mode random --probability 0.50000000000'],
  });
  expect(ends([HALF, DPORT_81, drop])).toMatchObject({ kinds: ['delivered'], about: [] });
});

it('takes what is printed of a chain with something that cannot be read, and knows nothing without', () => {
  const rule = [TTL, DPORT_80, drop];
  expect(ends(rule, '-m ttl --ttl-gt 63 -p tcp -m tcp --dport 81 -j DROP')).toEqual({
    kinds: ['delivered'],
    about: [],
    asked: ['INPUT'],
  });
  expect(ends(rule)).toMatchObject({ kinds: ['drop', 'delivered'], about: ['unknown: -m "ttl (revision 0)"'] });
});

it('walks what it cannot evaluate both ways, where that can do no more than end the rule', () => {
  const unknown = (name: string): Expression => ({ kind: 'unknown', name, data: new Uint8Array() });
  // tcp option maxseg size set rt mtu
  expect(ends([unknown('rt'), unknown('exthdr')])).toMatchObject({ kinds: ['delivered', 'delivered', 'delivered'] });
  expect(ends([unknown('log'), drop])).toMatchObject({ kinds: ['drop'], about: [] });
  expect(ends([unknown('quota'), drop])).toMatchObject({ kinds: ['drop', 'delivered'] });
  expect(ends([unknown('queue')])).toMatchObject({ kinds: ['cannot tell'] });
});

it('takes whatever is kept for each element of a set but a counter for a limit', () => {
  const add = (...expressions: Expression[]): Expression => ({
    kind: 'dynset',
    operation: 'add',
    set: 'clients',
    key: 0,
    expressions,
  });
  const count: Expression = { kind: 'unknown', name: 'connlimit', data: new Uint8Array() };
  expect(ends([add(count), drop])).toMatchObject({ kinds: ['drop', 'delivered'] });
  expect(ends([add(counter, count), drop])).toMatchObject({ kinds: ['drop', 'delivered'] });
  expect(ends([add(counter), drop])).toMatchObject({ kinds: ['drop'] });
});

it('knows what becomes of headers that are written to for the class of traffic and enough hops alone, and in our own tables', () => {
  const write = (offset: number, ...bytes: number[]): Expression[] => [
    immediate(Uint8Array.from(bytes)),
    { kind: 'payload-set', base: 'network', offset, length: bytes.length, from: 0, checksumOffset: 10 },
  ];
  const TCP = 6;
  for (const known of [write(0, 0x45, 0x20), write(8, 64, TCP), write(8, 64)])
    expect(ends(known)).toMatchObject({ kinds: ['delivered'] });
  for (const unknown of [write(0, 0x46, 0x20), write(2, 0, 20), write(8, 1, TCP), write(8, 64, 17), write(30, 1)])
    expect(ends(unknown)).toMatchObject({ kinds: ['cannot tell'] });
  const replace = [immediate(Uint8Array.of(10, 0, 0, 3)), setPayload.daddr('IPv4')];
  expect(ends(replace)).toMatchObject({ kinds: ['cannot tell'] });
  expect(ends(replace, undefined, 'nodeplane-localhost')).toMatchObject({ kinds: ['delivered'] });
});

it('does not know what becomes of packets that are made to look as if they were for others', () => {
  expect(ends([immediate(Uint8Array.of(3)), { kind: 'meta-set', key: 'pkttype', from: 0 }])).toMatchObject({
    kinds: ['cannot tell'],
  });
});

/** All ways through a chain. */
function waysThrough(expressions: readonly (readonly Expression[])[], element?: Rules['getElement']) {
  const place = { family: 'ip', table: 'filter' } as const;
  const chain = expressions.map((one) => ({ kind: 'rule', ...place, chain: 'INPUT', expressions: one }) as const);
  const rules: Rules = {
    baseChains: (hook) => (hook === 'input' ? [{ ...CHAIN, base: { type: 'filter', hook, priority: 0 } }] : []),
    rulesOf: () => chain,
    getSet: ({ name }) => ({ kind: 'set', ...place, name, key: ['mark'], data: ['mark'] }),
    getElement: (set, key) => element?.(set, key),
  };
  const question = { protocol: 'tcp', destinationPort: 80 } as const;
  return walkPacket(
    { ...question, source: parseIp('10.0.0.1'), destination: parseIp('10.0.0.2') },
    { origin: ETH0, sources: [new NftRules(rules)], host: HOST },
  ).branches;
}

it('matches of x_tables in a row that draw for one rule each are one draw', () => {
  const ways = waysThrough(Array.from({ length: 500 }, () => [HALF, counter, drop]));
  const kinds = ways.map(({ result }) => result.end.kind);
  expect(kinds).toEqual([...Array.from({ length: 500 }, () => 'drop'), 'delivered']);
  expect(Math.max(...ways.map(({ choices }) => choices.length))).toBe(1);
});

it('what is drawn in vain and drawn again the same way is one draw', () => {
  const drawn = [
    random(64),
    lookup('slots', { to: 0 }),
    { kind: 'nat', type: 'dnat', family: 'ip', address: 0 },
  ] as const;
  const ways = waysThrough([drawn, drawn, drawn], (_, key) => {
    return key === 'catch-all' || key[0]! < 40 ? undefined : { key, data: Uint8Array.of(10, 0, 1, key[0]!) };
  });
  expect(ways).toHaveLength(24 + 1);
  expect(Math.max(...ways.map(({ choices }) => choices.length))).toBe(1);
});
