import fc from 'fast-check';
import { addressBits, type IpFamily } from '../../../src/core/index.ts';
import {
  accept,
  type BaseChain,
  cmp,
  counter,
  ct,
  drop,
  type Expression,
  fib,
  goto,
  hostOrder32,
  immediate,
  interfaceName,
  jump,
  lookup,
  meta,
  type NftChange,
  type NftElement,
  networkOrder16,
  nftFamily,
  payload,
  random,
  returnToCaller,
  setMarkBits,
} from '../../../src/netlink/nftables/index.ts';
import { RTN_LOCAL } from '../../../src/netlink/uapi/rtnetlink.ts';
import type { OracleNetwork } from './network.ts';
import { PORTS } from './oracle-world.ts';

/** A table of random rules, as a transaction that makes it. */
export type RandomTable = readonly NftChange[];

const IPPROTO = { tcp: 6, udp: 17 };
/** Regular chains; one may jump to those behind it alone, so that no jump goes round. */
const REGULAR = ['one', 'two', 'three'];
const MARKS = [0, 1, 2, 0x4000];

/** What the node sends to itself would cross it twice, and the second time is traced under another number. */
const elsewhere = ({ destinations }: OracleNetwork) => destinations.slice(0, -1);
const port = fc.constantFrom(...PORTS);
const mark = fc.constantFrom(...MARKS).map(hostOrder32);
const op = fc.constantFrom('==' as const, '!=' as const);
const which = fc.constantFrom('saddr' as const, 'daddr' as const);

/** Loads a destination address and port side by side, as the keys of `pairs` and `verdicts` are. */
const pair = (family: IpFamily): Expression[] => [payload.daddr(family, 0), payload.dport(addressBits(family) / 32)];

const nothing = (family: IpFamily) => new Uint8Array(addressBits(family) / 8);

function match({ family, sources, destinations, prefixes }: OracleNetwork): fc.Arbitrary<readonly Expression[]> {
  const address = fc.constantFrom(...sources, ...destinations);
  return fc.oneof(
    fc
      .tuple(which, op, address)
      .map(([which, op, data]): Expression[] => [payload[which](family), { kind: 'cmp', from: 0, op, data }]),
    fc.tuple(which, op, address, fc.constantFrom(...prefixes)).map(([which, op, data, bits]): Expression[] => {
      const mask = data.map((_, index) => (0xff00 >> Math.min(8, Math.max(0, bits - 8 * index))) & 0xff);
      return [
        payload[which](family),
        { kind: 'bitwise', from: 0, to: 0, mask, xor: nothing(family) },
        { kind: 'cmp', from: 0, op, data: data.map((byte, index) => byte & mask[index]!) },
      ];
    }),
    fc
      .tuple(
        fc.constantFrom('==' as const, '!=' as const, '<' as const, '<=' as const, '>' as const, '>=' as const),
        port,
      )
      .map(([op, data]): Expression[] => [payload.dport(), { kind: 'cmp', from: 0, op, data: networkOrder16(data) }]),
    fc.tuple(op, port, port).map(([op, a, b]): Expression[] => [
      payload.dport(),
      {
        kind: 'range',
        from: 0,
        op,
        first: networkOrder16(Math.min(a, b)),
        last: networkOrder16(Math.max(a, b)),
      },
    ]),
    fc
      .tuple(fc.constantFrom('iifname' as const, 'oifname' as const), op, fc.constantFrom('in0', 'out0', 'lo'))
      .map(([key, op, name]): Expression[] => [meta(key), { kind: 'cmp', from: 0, op, data: interfaceName(name) }]),
    fc.tuple(op, mark).map(([op, data]): Expression[] => [meta('mark'), { kind: 'cmp', from: 0, op, data }]),
    fc.tuple(op, mark).map(([op, data]): Expression[] => [ct('mark'), { kind: 'cmp', from: 0, op, data }]),
    // new, invalid (not yet tracked), untracked
    fc.constantFrom(1 << 3, 1 << 0, 1 << 6).map((bit): Expression[] => bits(ct('state'), bit)),
    // dnat, snat, confirmed
    fc.constantFrom(1 << 5, 1 << 4, 1 << 3).map((bit): Expression[] => bits(ct('status'), bit)),
    fc
      .tuple(op, address)
      .map(([op, data]): Expression[] => [
        ct(family === 'IPv4' ? 'daddr-ip' : 'daddr-ip6', 0, 'original'),
        { kind: 'cmp', from: 0, op, data },
      ]),
    fc
      .tuple(which, op)
      .map(([which, op]): Expression[] => [
        fib('type', [which]),
        { kind: 'cmp', from: 0, op, data: hostOrder32(RTN_LOCAL) },
      ]),
    fc
      .constantFrom(IPPROTO.tcp, IPPROTO.udp)
      .map((number): Expression[] => [meta('l4proto'), cmp.equal(Uint8Array.of(number))]),
    fc
      .tuple(which, fc.boolean())
      .map(([which, invert]): Expression[] => [payload[which](family), lookup('addresses', { invert })]),
    fc.boolean().map((invert): Expression[] => [payload.dport(), lookup('ports', { invert })]),
    fc.boolean().map((invert): Expression[] => [...pair(family), lookup('pairs', { invert })]),
    fc
      .integer({ min: 2, max: 3 })
      .map((modulus): Expression[] => [random(modulus), cmp.equal(hostOrder32(modulus - 1))]),
  );
}

/** A match that this program cannot tell: rare, so that most walks have an end. */
const unknowable: fc.Arbitrary<readonly Expression[]> = fc.constant([
  { kind: 'limit', rate: 1, unit: 'second', burst: 2, of: 'packets' },
]);

function bits(load: Expression, bit: number): Expression[] {
  return [
    load,
    { kind: 'bitwise', from: 0, to: 0, mask: hostOrder32(bit), xor: new Uint8Array(4) },
    cmp.notEqual(hostOrder32(0)),
  ];
}

/** What a rule of a chain may do. `chains` are those it may jump to. */
function statement(
  chains: readonly string[],
  base: BaseChain | undefined,
  network: OracleNetwork,
): fc.Arbitrary<readonly Expression[]> {
  const { family, destinations } = network;
  const common: fc.WeightedArbitrary<readonly Expression[]>[] = [
    { weight: 6, arbitrary: fc.constant([counter]) },
    { weight: 2, arbitrary: fc.constant([accept]) },
    { weight: 1, arbitrary: fc.constant([drop]) },
    { weight: 2, arbitrary: fc.constant([returnToCaller]) },
    { weight: 3, arbitrary: fc.constantFrom(1, 2, 0x4000).map((bits) => setMarkBits(bits)) },
    {
      weight: 1,
      arbitrary: mark.map((data): Expression[] => [immediate(data), { kind: 'ct-set', key: 'mark', from: 0 }]),
    },
  ];
  if (chains.length > 0) {
    common.push(
      { weight: 4, arbitrary: fc.constantFrom(...chains).map((chain) => [jump(chain)]) },
      { weight: 2, arbitrary: fc.constantFrom(...chains).map((chain) => [goto(chain)]) },
    );
  }
  // Its verdicts jump to the last chain.
  if (chains.includes('three')) {
    common.push({ weight: 3, arbitrary: fc.constant([...pair(family), lookup('verdicts', { to: 'verdict' })]) });
  }
  if (base?.type === 'nat' && (base.hook === 'prerouting' || base.hook === 'output')) {
    const to = { kind: 'nat', type: 'dnat', family: nftFamily(family) } as const;
    common.push(
      {
        weight: 4,
        arbitrary: fc
          .tuple(fc.constantFrom(...(base.hook === 'output' ? elsewhere(network) : destinations)), port)
          .map(([data, number]): Expression[] => [
            immediate(data, 0),
            immediate(networkOrder16(number), 4),
            { ...to, address: 0, port: 4 },
          ]),
      },
      {
        weight: 3,
        arbitrary: fc.constant<Expression[]>([random(4), lookup('targets', { to: 0 }), { ...to, address: 0 }]),
      },
    );
  }
  if (base?.type === 'nat' && base.hook === 'postrouting')
    common.push({ weight: 3, arbitrary: fc.constant([{ kind: 'masquerade' }]) });
  if (base?.type === 'filter' && base.priority === -300)
    common.push({ weight: 1, arbitrary: fc.constant([{ kind: 'notrack' }]) });
  if (base?.type === 'filter' && (base.hook === 'forward' || base.hook === 'input')) {
    common.push({ weight: 1, arbitrary: fc.constant([{ kind: 'reject', type: 'icmp', code: 3 }]) });
  }
  return fc.oneof(...common);
}

const BASES: readonly BaseChain[] = [
  { type: 'filter', hook: 'prerouting', priority: -300 },
  { type: 'filter', hook: 'prerouting', priority: -150 },
  { type: 'nat', hook: 'prerouting', priority: -100 },
  { type: 'filter', hook: 'prerouting', priority: 0 },
  { type: 'filter', hook: 'input', priority: 0 },
  { type: 'filter', hook: 'forward', priority: -10 },
  { type: 'filter', hook: 'forward', priority: 0, policy: 'drop' },
  { type: 'filter', hook: 'output', priority: -300 },
  { type: 'nat', hook: 'output', priority: -90 },
  { type: 'filter', hook: 'output', priority: 0 },
  { type: 'filter', hook: 'postrouting', priority: -150 },
  { type: 'nat', hook: 'postrouting', priority: 110 },
];

/** A table with sets, maps, regular chains and base chains in all hooks. */
export function randomTable(
  name: string,
  family: 'ip' | 'ip6' | 'inet',
  network: OracleNetwork,
): fc.Arbitrary<RandomTable> {
  const { destinations, sources } = network;
  const addressType = network.family === 'IPv4' ? 'ipv4_addr' : 'ipv6_addr';
  const table = { family, table: name } as const;
  const rules = (chain: string, may: readonly string[], base?: BaseChain): fc.Arbitrary<NftChange[]> => {
    const matches = fc.array(
      fc.oneof({ weight: 50, arbitrary: match(network) }, { weight: 1, arbitrary: unknowable }),
      {
        maxLength: 2,
      },
    );
    const rule = fc.tuple(matches, statement(may, base, network)).map(([matches, does]): NftChange => {
      const expressions = [...matches.flat(), ...does];
      return { operation: 'add', object: { kind: 'rule', ...table, chain, expressions } };
    });
    return fc.array(rule, { minLength: 1, maxLength: 4 });
  };
  const element = <T>(of: fc.Arbitrary<T>, make: (value: T) => NftElement) =>
    fc.uniqueArray(of.map(make), { maxLength: 4, selector: ({ key }) => String(key) });
  const pairs = fc.tuple(fc.constantFrom(...destinations), port);
  const keyOf = ([address, number]: readonly [Uint8Array, number]) =>
    Uint8Array.of(...address, ...networkOrder16(number), 0, 0);
  const contents = fc.tuple(
    element(fc.constantFrom(...sources, ...destinations), (key) => ({ key })),
    fc
      .tuple(port, port)
      .map(([a, b]): NftElement[] => [
        { key: networkOrder16(Math.min(a, b)) },
        { key: networkOrder16(Math.max(a, b) + 1), intervalEnd: true },
      ]),
    element(pairs, (value) => ({ key: keyOf(value) })),
    element(fc.tuple(pairs, fc.constantFrom(accept, drop, returnToCaller, jump('three'))), ([value, { verdict }]) => ({
      key: keyOf(value),
      verdict,
    })),
    fc
      .array(fc.constantFrom(...elsewhere(network)), { minLength: 3, maxLength: 4 })
      .map((targets): NftElement[] => targets.map((data, index) => ({ key: hostOrder32(index), data }))),
  );
  const used = fc.subarray([...BASES.keys()], { minLength: 4 });
  return fc.tuple(used, contents).chain(([bases, [addresses, ports, pairs, verdicts, targets]]) => {
    const set = { kind: 'set', ...table } as const;
    const head: NftChange[] = [
      { kind: 'table', family, name } as const,
      { ...set, name: 'addresses', key: [addressType] } as const,
      { ...set, name: 'ports', key: ['inet_service'], flags: ['interval'] } as const,
      { ...set, name: 'pairs', key: [addressType, 'inet_service'] } as const,
      { ...set, name: 'verdicts', key: [addressType, 'inet_service'], data: 'verdict' } as const,
      { ...set, name: 'targets', key: ['mark'], data: [addressType] } as const,
      ...REGULAR.map((chain) => ({ kind: 'chain', ...table, name: chain }) as const),
      ...bases.map((index) => ({ kind: 'chain', ...table, name: `base-${index}`, base: BASES[index]! }) as const),
      ...Object.entries({ addresses, ports, pairs, verdicts, targets }).map(
        ([set, elements]) => ({ kind: 'elements', ...table, set, elements }) as const,
      ),
    ].map((object) => ({ operation: 'add', object }));
    return fc
      .tuple(
        ...REGULAR.map((chain, index) => rules(chain, REGULAR.slice(index + 1))),
        ...bases.map((index) => rules(`base-${index}`, REGULAR, BASES[index])),
      )
      .map((lists) => [...head, ...lists.flat()]);
  });
}
