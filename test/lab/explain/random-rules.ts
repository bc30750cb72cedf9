import fc from 'fast-check';
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
  payload,
  random,
  returnToCaller,
  setMarkBits,
} from '../../../src/netlink/nftables/index.ts';
import { RTN_LOCAL } from '../../../src/netlink/uapi/rtnetlink.ts';
import { DESTINATIONS, PORTS, SOURCES } from './oracle-world.ts';

/** What the node sends to itself would cross it twice, and the second time is traced under another number. */
const ELSEWHERE = DESTINATIONS.slice(0, -1);

/** A table of random rules, as a transaction that makes it. */
export type RandomTable = readonly NftChange[];

const IPPROTO = { tcp: 6, udp: 17 };
/** Regular chains; one may jump to those behind it alone, so that no jump goes round. */
const REGULAR = ['one', 'two', 'three'];
const MARKS = [0, 1, 2, 0x4000];

const address = fc.constantFrom(...SOURCES, ...DESTINATIONS);
const port = fc.constantFrom(...PORTS);
const mark = fc.constantFrom(...MARKS).map(hostOrder32);
const op = fc.constantFrom('==' as const, '!=' as const);
const which = fc.constantFrom('saddr' as const, 'daddr' as const);

const FAMILY = 'IPv4';
const NOTHING = new Uint8Array(4);

/** Loads a destination address and port into registers 0 and 1, as the keys of `pairs` and `verdicts` are. */
const pair = (): Expression[] => [payload.daddr(FAMILY, 0), payload.dport(1)];

const match: fc.Arbitrary<readonly Expression[]> = fc.oneof(
  fc
    .tuple(which, op, address)
    .map(([which, op, data]): Expression[] => [payload[which](FAMILY), { kind: 'cmp', from: 0, op, data }]),
  fc.tuple(which, op, address, fc.constantFrom(8, 16, 30)).map(([which, op, data, bits]): Expression[] => {
    const mask = Uint8Array.from(hostOrder32((0xffffffff << (32 - bits)) >>> 0)).reverse();
    return [
      payload[which](FAMILY),
      { kind: 'bitwise', from: 0, to: 0, mask, xor: NOTHING },
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
    .map(([op, data]): Expression[] => [ct('daddr-ip', 0, 'original'), { kind: 'cmp', from: 0, op, data }]),
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
    .map(([which, invert]): Expression[] => [payload[which](FAMILY), lookup('addresses', { invert })]),
  fc.boolean().map((invert): Expression[] => [payload.dport(), lookup('ports', { invert })]),
  fc.boolean().map((invert): Expression[] => [...pair(), lookup('pairs', { invert })]),
  fc.integer({ min: 2, max: 3 }).map((modulus): Expression[] => [random(modulus), cmp.equal(hostOrder32(modulus - 1))]),
);

/** A match that this program cannot tell: rare, so that most walks have an end. */
const unknowable: fc.Arbitrary<readonly Expression[]> = fc.constant([
  { kind: 'limit', rate: 1, unit: 'second', burst: 2, of: 'packets' },
]);

function bits(load: Expression, bit: number): Expression[] {
  return [
    load,
    { kind: 'bitwise', from: 0, to: 0, mask: hostOrder32(bit), xor: NOTHING },
    cmp.notEqual(hostOrder32(0)),
  ];
}

/** What a rule of a chain may do. `chains` are those it may jump to. */
function statement(chains: readonly string[], base: BaseChain | undefined): fc.Arbitrary<readonly Expression[]> {
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
    common.push({ weight: 3, arbitrary: fc.constant([...pair(), lookup('verdicts', { to: 'verdict' })]) });
  }
  if (base?.type === 'nat' && (base.hook === 'prerouting' || base.hook === 'output')) {
    const to = { kind: 'nat', type: 'dnat', family: 'ip' } as const;
    common.push(
      {
        weight: 4,
        arbitrary: fc
          .tuple(fc.constantFrom(...(base.hook === 'output' ? ELSEWHERE : DESTINATIONS)), port)
          .map(([data, number]): Expression[] => [
            immediate(data, 0),
            immediate(networkOrder16(number), 1),
            { ...to, address: 0, port: 1 },
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
export function randomTable(name: string, family: 'ip' | 'inet'): fc.Arbitrary<RandomTable> {
  const table = { family, table: name } as const;
  const rules = (chain: string, may: readonly string[], base?: BaseChain): fc.Arbitrary<NftChange[]> => {
    const matches = fc.array(fc.oneof({ weight: 50, arbitrary: match }, { weight: 1, arbitrary: unknowable }), {
      maxLength: 2,
    });
    const rule = fc.tuple(matches, statement(may, base)).map(([matches, does]): NftChange => {
      const expressions = [...matches.flat(), ...does];
      return { operation: 'add', object: { kind: 'rule', ...table, chain, expressions } };
    });
    return fc.array(rule, { minLength: 1, maxLength: 4 });
  };
  const element = <T>(of: fc.Arbitrary<T>, make: (value: T) => NftElement) =>
    fc.uniqueArray(of.map(make), { maxLength: 4, selector: ({ key }) => String(key) });
  const pairs = fc.tuple(fc.constantFrom(...DESTINATIONS), port);
  const keyOf = ([address, number]: readonly [Uint8Array, number]) =>
    Uint8Array.of(...address, ...networkOrder16(number), 0, 0);
  const contents = fc.tuple(
    element(address, (key) => ({ key })),
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
      .array(fc.constantFrom(...ELSEWHERE), { minLength: 3, maxLength: 4 })
      .map((targets): NftElement[] => targets.map((data, index) => ({ key: hostOrder32(index), data }))),
  );
  const used = fc.subarray([...BASES.keys()], { minLength: 4 });
  return fc.tuple(used, contents).chain(([bases, [addresses, ports, pairs, verdicts, targets]]) => {
    const set = { kind: 'set', ...table } as const;
    const head: NftChange[] = [
      { kind: 'table', family, name } as const,
      { ...set, name: 'addresses', key: ['ipv4_addr'] } as const,
      { ...set, name: 'ports', key: ['inet_service'], flags: ['interval'] } as const,
      { ...set, name: 'pairs', key: ['ipv4_addr', 'inet_service'] } as const,
      { ...set, name: 'verdicts', key: ['ipv4_addr', 'inet_service'], data: 'verdict' } as const,
      { ...set, name: 'targets', key: ['mark'], data: ['ipv4_addr'] } as const,
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
