import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  counter,
  expressionKey,
  goto,
  hostOrder32,
  intervalRanges,
  lookup,
  meta,
  Nftables,
  type NftElement,
  type NftSet,
  payload,
  random,
  setMarkBits,
} from '../../../src/netlink/nftables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { FORMS_SETUP, RULE_FORMS } from '../../fakes/nftables-forms.ts';
import { intervalElements } from '../../fakes/nftables-intervals.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { add, addElements, bytes, set, T, TABLE } from './nftables-objects.ts';

let namespace: TestNamespace;
let nft: Nftables;
/** Another program's view: nft of the system. */
const listing = () => namespace.run('nft', '-a', 'list', 'ruleset');

beforeAll(() => {
  namespace = createNamespace('nftables');
  nft = inNetns(namespace.path, () => Nftables.open());
});
beforeEach(() => {
  namespace.run('nft', FORMS_SETUP);
});
afterEach(() => {
  namespace.run('nft', 'flush ruleset');
});
afterAll(() => {
  nft.close();
  removeAll();
});

/** Listed without the rules' numbers. */
const rulesListed = (chain: string, family = 'ip') =>
  namespace
    .run('nft', 'list', 'chain', family, 't', chain)
    .split('\n')
    .filter((line) => /^\t\t/.test(line) && !line.includes('hook'))
    .map((line) => line.trim());

describe('a rule', () => {
  it.each(RULE_FORMS)(
    'is listed by nft like its own, and read back as written: $text',
    ({ family = 'ip', chain, text, expressions }) => {
      namespace.run('nft', 'add', 'rule', family, 't', chain, text);
      nft.commit([add({ kind: 'rule', ...T, family, chain, expressions, comment: 'ours' })]);
      const [theirs, ours] = rulesListed(chain, family);
      expect(ours).toBe(`${theirs} comment "ours"`);
      const [first, second] = nft.listRules({ kind: 'chain', ...T, family, name: chain });
      expect(second!.comment).toBe('ours');
      expect(second!.expressions.map(expressionKey)).toEqual(expressions.map(expressionKey));
      expect(first!.expressions.map(expressionKey)).toEqual(expressions.map(expressionKey));
    },
  );

  it('balances through a map of endpoints, which nft 1.0.6 lists too', () => {
    const key = [payload.daddr('IPv4'), meta('l4proto', 1), payload.dport(2)];
    const expressions = [
      ...key,
      random(3, 3),
      lookup('endpoints', { to: 0 }),
      { kind: 'nat', type: 'dnat', family: 'ip', address: 0, port: 1 } as const,
    ];
    // nft 1.0.6 aborts on a rule that writes into a map what it found in another, if it can tell: it cannot when the value
    // is taken from its second field on, where it still sees what was there before.
    const affine = [
      random(3, 1),
      payload.daddr('IPv4', 2),
      lookup('choices', { from: 1, to: 0 }),
      payload.saddr('IPv4', 4),
      { kind: 'dynset', operation: 'update', set: 'sticky', key: 4, data: 1, timeoutMs: 60_000 } as const,
    ];
    nft.commit([
      add({
        ...set('endpoints'),
        key: ['ipv4_addr', 'inet_proto', 'inet_service', 'integer'],
        data: ['ipv4_addr', 'inet_service'],
        comment: 'endpoints',
      }),
      add({
        ...set('choices'),
        key: ['integer', 'ipv4_addr'],
        data: ['inet_proto', 'ipv4_addr', 'inet_service'],
      }),
      add({
        ...set('sticky'),
        key: ['ipv4_addr'],
        data: ['ipv4_addr', 'inet_service'],
        flags: ['dynamic', 'timeout'],
        size: 1000,
      }),
      addElements('endpoints', {
        key: bytes(10, 96, 0, 1, 6, 0, 0, 0, 0, 80, 0, 0, ...hostOrder32(2)),
        data: bytes(10, 1, 0, 1, 0x1f, 0x90, 0, 0),
        comment: 'shop/web:http',
      }),
      add({ kind: 'chain', ...T, name: 'lb-3', comment: 'three endpoints' }),
      add({ kind: 'rule', ...T, chain: 'lb-3', expressions: affine }),
      add({ kind: 'rule', ...T, chain: 'lb-3', expressions }),
      add({ kind: 'rule', ...T, chain: 'pre', expressions: [goto('lb-3')] }),
    ]);
    const text = listing();
    expect(text).toContain('dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 3 map @endpoints');
    expect(text).toContain('update @sticky { ip saddr timeout 1m : numgen random mod 3 . ip daddr }');
    expect(text).toContain('10.96.0.1 . tcp . 80 . 2 comment "shop/web:http" : 10.1.0.1 . 8080');
    const [first, second] = nft.listRules({ kind: 'chain', ...T, name: 'lb-3' });
    expect(first!.expressions.map(expressionKey)).toEqual(affine.map(expressionKey));
    expect(second!.expressions.map(expressionKey)).toEqual(expressions.map(expressionKey));
  });

  it('goes where it is put: behind, before, in place of another', () => {
    const rule = (mark: number, rest: object = {}) =>
      ({ kind: 'rule', ...T, chain: 'in', expressions: setMarkBits(mark), ...rest }) as const;
    const marks = () => rulesListed('in').map((line) => Number(/0x[0-9a-f]+/.exec(line)![0]));
    nft.commit([add(rule(1)), { operation: 'insert', object: rule(2) }]);
    expect(marks()).toEqual([2, 1]);
    const handle = nft.listRules(TABLE)[0]!.handle;
    nft.commit([
      add(rule(4, { position: handle })),
      { operation: 'insert', object: rule(8, { position: handle }) },
      { operation: 'replace', object: rule(16, { handle }) },
    ]);
    expect(marks()).toEqual([8, 16, 4, 1]);
    nft.commit([{ operation: 'delete', object: nft.listRules(TABLE)[1]! }]);
    expect(marks()).toEqual([8, 4, 1]);
    nft.commit([{ operation: 'flush', object: { kind: 'chain', ...T, name: 'in' } }]);
    expect(marks()).toEqual([]);
  });
});

describe('tables, chains, sets and counters', () => {
  const sets: readonly NftSet[] = [
    { ...set('plain'), key: ['ipv4_addr'], size: 100, comment: 'with a size' },
    { ...set('six'), key: ['ipv6_addr', 'inet_proto', 'inet_service'], data: 'verdict', comment: 'é' },
    { ...set('timed'), key: ['ipv4_addr'], flags: ['timeout'], timeoutMs: 3_600_000, gcIntervalMs: 20_000 },
    { ...set('spans'), key: ['ipv4_addr'], flags: ['interval'] },
    { ...set('many'), key: ['ipv4_addr', 'inet_service'], flags: ['interval'] },
    { ...set('names'), key: ['ifname'] },
    { ...set('values'), key: ['mark'], data: ['ipv6_addr', 'inet_service'] },
  ];

  it('are read back as written, and listed by nft', () => {
    const chains = [
      { kind: 'chain', ...T, name: 'a', comment: 'regular' },
      {
        kind: 'chain',
        ...T,
        name: 'b',
        base: { type: 'filter', hook: 'forward', priority: -5, policy: 'drop' },
        comment: 'base',
      },
    ] as const;
    const hits = { kind: 'counter', ...T, name: 'n', packets: 7n, bytes: 8n, comment: 'counted' } as const;
    nft.commit([
      add({ kind: 'table', family: 'inet', name: 'other', comment: 'of both' }),
      ...sets.map(add),
      ...chains.map(add),
      add(hits),
    ]);
    const without = <O extends { handle?: unknown; use?: unknown }>({ handle: _h, use: _u, ...rest }: O) => rest;
    expect(nft.listTables('inet').map(without)).toEqual([
      { kind: 'table', family: 'inet', name: 'other', comment: 'of both' },
    ]);
    expect(nft.listTables().map(({ family, name }) => `${family} ${name}`)).toEqual(['ip t', 'bridge t', 'inet other']);
    const mine = nft.listSets(TABLE).filter(({ name }) => sets.some((known) => known.name === name));
    expect(mine.map(without)).toEqual(sets);
    expect(
      nft
        .listChains(TABLE)
        .filter(({ name }) => name === 'a' || name === 'b')
        .map(without),
    ).toEqual(chains);
    const based = nft.listChains().filter(({ base }) => base !== undefined);
    expect(based.length).toBeGreaterThan(0);
    expect(nft.listBaseChains()).toEqual(based);
    expect(
      nft
        .listCounters(TABLE)
        .filter(({ name }) => name === 'n')
        .map(without),
    ).toEqual([hits]);
    for (const word of ['"with a size"', '"é"', '"regular"', '"base"', '"of both"', 'policy drop', 'flags interval']) {
      expect(listing()).toContain(word);
    }
    expect(nft.listSets({ kind: 'table', family: 'ip', name: 'nothing' })).toEqual([]);
    expect(nft.listRules({ kind: 'table', family: 'ip', name: 'nothing' })).toEqual([]);
  });

  it('hold elements of every kind', () => {
    const key = (port: number) => bytes(0xfd, ...new Array(14).fill(0), 1, 17, 0, 0, 0, 0, port, 0, 0);
    const elements: Readonly<Record<string, readonly NftElement[]>> = {
      plain: [{ key: bytes(10, 0, 0, 1), comment: 'one' }, { key: bytes(10, 0, 0, 2) }],
      six: [
        { key: key(53), verdict: { kind: 'goto', chain: 'target' }, comment: 'dns' },
        { key: key(54), verdict: { kind: 'drop' } },
      ],
      many: [{ key: bytes(10, 0, 0, 0, 0, 80, 0, 0), keyEnd: bytes(10, 0, 0, 255, 0, 90, 0, 0) }],
      values: [{ key: hostOrder32(9), data: bytes(...new Array(15).fill(0), 1, 0, 80, 0, 0) }],
      spans: intervalElements([
        { first: bytes(10, 0, 0, 0), last: bytes(10, 0, 0, 255), comment: 'low' },
        { first: bytes(10, 0, 1, 0), last: bytes(10, 0, 1, 255) },
        { first: bytes(224, 0, 0, 0), last: bytes(255, 255, 255, 255) },
      ]),
    };
    nft.commit([...sets.map(add), ...Object.entries(elements).map(([name, list]) => addElements(name, ...list))]);
    const sorted = (list: readonly NftElement[]) =>
      [...list].sort((a, b) => Buffer.compare(a.key, b.key)).map(({ key, ...rest }) => ({ ...rest, key: [...key] }));
    for (const name of ['plain', 'six', 'values'] as const) {
      expect(sorted(nft.listElements(set(name)))).toEqual(sorted(elements[name]!));
    }
    const [range] = nft.listElements(set('many'));
    expect([[...range!.key], [...range!.keyEnd!]]).toEqual([
      [10, 0, 0, 0, 0, 80, 0, 0],
      [10, 0, 0, 255, 0, 90, 0, 0],
    ]);
    expect(
      intervalRanges(nft.listElements(set('spans'))).map(({ first, last, comment }) => [
        first.join('.'),
        last.join('.'),
        comment,
      ]),
    ).toEqual([
      ['10.0.0.0', '10.0.0.255', 'low'],
      ['10.0.1.0', '10.0.1.255', undefined],
      ['224.0.0.0', '255.255.255.255', undefined],
    ]);
    const text = listing();
    for (const word of [
      '10.0.0.0/24 comment "low"',
      '10.0.0.0/24 . 80-90',
      'fd00::1 . udp . 53 comment "dns" : goto target',
      '0x00000009 : ::1 . 80',
    ]) {
      expect(text).toContain(word);
    }
    expect(nft.getElement(set('six'), key(53))).toMatchObject({ comment: 'dns' });
    expect(nft.getElement(set('six'), key(55))).toBeUndefined();
    nft.commit([
      {
        operation: 'delete',
        object: { kind: 'elements', ...T, set: 'plain', elements: [{ key: bytes(10, 0, 0, 1) }] },
      },
      { operation: 'flush', object: set('six') },
    ]);
    expect(nft.listElements(set('plain'))).toHaveLength(1);
    expect(nft.listElements(set('six'))).toEqual([]);
    expect(() => nft.listElements(set('missing'))).toThrow(/ENOENT/);
  });

  it('let elements go after their time, and keep what is left of it', () => {
    nft.commit([
      ...sets.slice(2, 3).map(add),
      addElements(
        'timed',
        { key: bytes(1, 1, 1, 1), timeoutMs: 7_200_000 },
        { key: bytes(1, 1, 1, 2), timeoutMs: 7_200_000, expirationMs: 60_000 },
        { key: bytes(1, 1, 1, 3) },
      ),
    ]);
    const [first, second, third] = nft.listElements(set('timed')).sort((a, b) => Buffer.compare(a.key, b.key)) as [
      NftElement,
      NftElement,
      NftElement,
    ];
    expect(first.timeoutMs).toBe(7_200_000);
    expect(first.expirationMs).toBeGreaterThan(7_100_000);
    expect(second.expirationMs).toBeLessThanOrEqual(60_000);
    expect(second.expirationMs).toBeGreaterThan(50_000);
    expect(third.expirationMs).toBeLessThanOrEqual(3_600_000);
  });

  it('has anonymous sets live and die with their rule', () => {
    nft.commit([
      add({ ...set('__set%d'), id: 5, key: ['ipv4_addr'], flags: ['anonymous', 'constant'] }),
      add({ kind: 'elements', ...T, set: '__set%d', setId: 5, elements: [{ key: bytes(10, 0, 0, 1) }] }),
      add({
        kind: 'rule',
        ...T,
        chain: 'in',
        expressions: [payload.saddr('IPv4'), { ...lookup('__set%d'), setId: 5 }, counter],
      }),
    ]);
    expect(rulesListed('in')).toEqual(['ip saddr { 10.0.0.1 } counter packets 0 bytes 0']);
    nft.commit([{ operation: 'flush', object: TABLE }]);
    expect(nft.listSets(TABLE).filter(({ flags }) => flags?.includes('anonymous'))).toEqual([]);
  });

  it('are destroyed whether they are there or not', () => {
    const chain = { kind: 'chain', ...T, name: 'gone' } as const;
    nft.commit([{ operation: 'destroy', object: chain }]);
    nft.commit([add(chain)]);
    nft.commit([
      { operation: 'destroy', object: chain },
      { operation: 'destroy', object: { ...TABLE, name: 'gone' } },
    ]);
    expect(nft.listChains(TABLE).map(({ name }) => name)).not.toContain('gone');
    nft.commit([{ operation: 'destroy', object: TABLE }]);
    expect(nft.listTables('ip')).toEqual([]);
  });
});
