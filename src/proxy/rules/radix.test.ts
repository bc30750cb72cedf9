import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type KeySpace, RadixTree } from './radix.ts';

// Keys and prefixes as text here: '0123' is a key of four digits, '01' a prefix of it.
const text: KeySpace = {
  match: (digits, length) => [...digits.subarray(0, length)].join(''),
  chainName: (digits, length) => `chain-${[...digits.subarray(0, length)].join('')}`,
};
const digitsOf = (key: string) => Uint8Array.from(key, Number);

type Chains = Map<string, readonly string[]>;
const ROOT = 'root';

/** Adds what the tree says changed to what was known before. */
function follow(tree: RadixTree, chains: Chains): Chains {
  const changes = tree.takeChanges();
  if (changes.root) chains.set(ROOT, changes.root);
  for (const [name, rules] of changes.chains) {
    if (rules) chains.set(name, rules);
    else chains.delete(name);
  }
  return chains;
}

function freshChains(keys: Iterable<string>): Chains {
  const tree = new RadixTree(text);
  for (const key of keys) tree.put(digitsOf(key), key);
  return follow(tree, new Map([[ROOT, []]]));
}

const sorted = (chains: Chains) => [...chains].sort(([a], [b]) => (a < b ? -1 : 1));

/** Walks a packet with this key through the chains: how many rules it meets, how deep it gets, which rule it hits. */
function walk(chains: Chains, key: string): { met: number; depth: number; hit: string | undefined } {
  let met = 0;
  let depth = 0;
  let name = ROOT;
  descend: for (;;) {
    for (const rule of chains.get(name) ?? []) {
      met++;
      const [match, , chain] = rule.split(' ');
      if (!key.startsWith(match!)) continue;
      if (!chain) return { met, depth, hit: rule };
      name = chain;
      depth++;
      continue descend;
    }
    return { met, depth, hit: undefined };
  }
}

/** The definition, written down without regard to cost. */
function definition(keys: readonly string[]): Chains {
  const below = (prefix: string) => keys.filter((key) => key.startsWith(prefix));
  const isBranch = (prefix: string) => new Set(below(prefix).map((key) => key[prefix.length])).size > 1;
  const classOf = (prefix: string) => Math.max(0, Math.ceil(Math.log2(below(prefix).length / 4) / 2));
  const prefixes = new Set(keys.flatMap((key) => [...key].map((_, length) => key.slice(0, length))));
  const branches = [...prefixes].filter(isBranch).sort((a, b) => a.length - b.length);
  const above = (prefix: string) =>
    branches.filter((other) => other.length < prefix.length && prefix.startsWith(other)).at(-1);
  const isChain = (prefix: string) => {
    const parent = above(prefix);
    return parent !== undefined && classOf(prefix) > 0 && classOf(prefix) < classOf(parent);
  };
  const chainPrefixes = branches.filter(isChain);
  const nearest = (prefix: string) =>
    chainPrefixes.filter((other) => other !== prefix && prefix.startsWith(other)).at(-1) ?? '';
  const rulesOf = (chain: string, descend: string) => [
    ...chainPrefixes
      .filter((prefix) => nearest(prefix) === chain)
      .sort()
      .map((prefix) => `${prefix} ${descend} chain-${prefix}`),
    ...keys.filter((key) => nearest(key) === chain).sort(),
  ];
  const chains: Chains = new Map([[ROOT, rulesOf('', '-j')]]);
  for (const prefix of chainPrefixes) chains.set(`chain-${prefix}`, rulesOf(prefix, '-g'));
  return chains;
}

// Few distinct digits make deep, crowded trees out of few keys.
const key = fc.oneof(
  fc.string({ unit: fc.constantFrom('0', '1', '2', '3'), minLength: 8, maxLength: 8 }),
  fc.string({ unit: fc.constantFrom('0', '0', '0', '1'), minLength: 8, maxLength: 8 }),
);

describe('RadixTree', () => {
  it('writes up to four keys flat and more as chains of prefixes', () => {
    expect(sorted(freshChains(['0000', '0001', '3000']))).toEqual([[ROOT, ['0000', '0001', '3000']]]);
    const keys = ['0000', '0001', '0002', '0010', '0011', '0012', '1000', '1100', '1110', '1111'];
    expect(sorted(freshChains([...keys, '2000', '2001', '3000', '3001', '3111', '3222', '3333']))).toEqual([
      ['chain-00', ['0000', '0001', '0002', '0010', '0011', '0012']],
      ['chain-3', ['3000', '3001', '3111', '3222', '3333']],
      [ROOT, ['00 -j chain-00', '3 -j chain-3', '1000', '1100', '1110', '1111', '2000', '2001']],
    ]);
  });

  it('is what its definition says, whatever led there', () => {
    const operation = fc.record({ key, put: fc.boolean(), render: fc.boolean() });
    fc.assert(
      fc.property(fc.array(key, { maxLength: 120 }), fc.array(operation, { maxLength: 120 }), (initial, operations) => {
        const tree = new RadixTree(text);
        const chains: Chains = new Map([[ROOT, []]]);
        const keys = new Set(initial);
        for (const each of initial) tree.put(digitsOf(each), each);
        for (const { key: each, put, render } of operations) {
          // Every second removal takes a key that is there.
          const target = put || keys.has(each) ? each : ([...keys][Number(each) % (keys.size || 1)] ?? each);
          if (put) keys.add(target);
          else keys.delete(target);
          if (put) tree.put(digitsOf(target), target);
          else tree.remove(digitsOf(target));
          if (render) follow(tree, chains);
        }
        follow(tree, chains);
        expect(tree.size).toBe(keys.size);
        expect(sorted(chains)).toEqual(sorted(definition([...keys])));
        expect(sorted(chains)).toEqual(sorted(freshChains([...keys].sort())));
      }),
      { numRuns: 150 },
    );
  });

  it('leads exactly the packets of a key to its rule', () => {
    fc.assert(
      fc.property(fc.uniqueArray(key, { maxLength: 200 }), fc.array(key), (keys, others) => {
        const chains = freshChains(keys);
        for (const each of keys) expect(walk(chains, each).hit).toBe(each);
        for (const each of others) expect(walk(chains, each).hit).toBe(keys.includes(each) ? each : undefined);
      }),
    );
  });

  it('replaces the rule of a key', () => {
    const tree = new RadixTree(text);
    for (const each of ['0000', '1111']) tree.put(digitsOf(each), each);
    tree.put(digitsOf('1111'), '1111 -j other');
    expect(follow(tree, new Map()).get(ROOT)).toEqual(['0000', '1111 -j other']);
    expect(tree.takeChanges().root).toBeUndefined();
  });

  it('never nests deeper than eight chains, also for keys that branch at every digit', () => {
    // 25 digits: an IPv4 address, a protocol and a port.
    const keys = new Set<string>();
    for (let length = 0; length < 25; length++) {
      for (let i = 0; i < 4 ** Math.min(5, 24 - length) && i < 2 ** length; i++) {
        const tail = i.toString(4).padStart(Math.max(0, 24 - length), '0');
        keys.add(`${'0'.repeat(length)}1${tail}`.slice(0, 25).padEnd(25, '0'));
      }
    }
    const chains = freshChains(keys);
    const depths = [...keys].map((each) => walk(chains, each).depth);
    expect(keys.size).toBeGreaterThan(2000);
    expect(Math.max(...depths)).toBeLessThanOrEqual(8);
    expect(Math.max(...depths)).toBeGreaterThan(2);
  });
});

describe('RadixTree over 10,000 random addresses in a /12', () => {
  // 20 random bits, as ten digits, from a fixed seed.
  let seed = 1;
  const random = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return (seed >>> 12).toString(4).padStart(10, '0');
  };
  const keys = new Set<string>();
  while (keys.size < 10_000) keys.add(random());
  const tree = new RadixTree(text);
  for (const each of keys) tree.put(digitsOf(each), each);
  const chains = follow(tree, new Map());

  it('lets a packet meet at most 20 rules on average', () => {
    const walks = [...keys].map((each) => walk(chains, each));
    expect(walks.every(({ hit }) => hit !== undefined)).toBe(true);
    const mean = walks.reduce((sum, { met }) => sum + met, 0) / walks.length;
    expect(mean).toBeLessThanOrEqual(20);
  });

  it('costs the same few steps for a change as a tree of 100', () => {
    const few = new RadixTree(text);
    for (const each of [...keys].slice(0, 100)) few.put(digitsOf(each), each);
    few.takeChanges();
    const cost = (of: RadixTree) => {
      const before = of.visited;
      for (let i = 0; i < 200; i++) {
        const added = random();
        of.put(digitsOf(added), added);
        of.takeChanges();
        of.remove(digitsOf(added));
        of.takeChanges();
      }
      return (of.visited - before) / 400;
    };
    expect(cost(tree)).toBeLessThan(150);
    expect(cost(tree)).toBeLessThan(4 * cost(few));
  });
});
