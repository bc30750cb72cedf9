import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type KeySpace, RadixTree } from './radix.ts';

// Keys and prefixes as text here: '01101100' is a key of eight bits, '01' a prefix of it.
const BITS = 16;
const bitsOf = (key: string) => Uint8Array.from(key.match(/.{8}/g) ?? [], (byte) => Number.parseInt(byte, 2));
const textOf = (key: Uint8Array) => Array.from(key, (byte) => byte.toString(2).padStart(8, '0')).join('');
const text: KeySpace = {
  match: (key, length) => textOf(key).slice(0, length),
  chainName: (key, length) => `chain-${textOf(key).slice(0, length)}`,
};

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
  for (const key of keys) tree.put(bitsOf(key), key);
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
  const chains: Chains = new Map();
  const below = (prefix: string) => keys.filter((key) => key.startsWith(prefix));
  /** The prefix of the branch of all keys that start so, or their only key. */
  const nodeAt = (start: string) => {
    const [first = '', ...others] = below(start);
    let length = first.length;
    for (const other of others) while (!other.startsWith(first.slice(0, length))) length--;
    return first.slice(0, length);
  };
  const classOf = (prefix: string) =>
    Math.min(10, Math.max(0, Math.ceil(Math.log(below(prefix).length / 3) / Math.log(2.5))));
  const write = (chain: string, prefix: string, descend: string) => {
    const gotos: string[] = [];
    const rules: string[] = [];
    const list = (node: string, inline: boolean) => {
      if (keys.includes(node)) {
        rules.push(node);
        return;
      }
      const children = [nodeAt(`${node}0`), nodeAt(`${node}1`)] as const;
      const heavier = classOf(children[0]) > classOf(children[1]) ? 0 : 1;
      const next = inline ? children[heavier] : undefined;
      const ownClass = chain === ROOT && node === prefix ? 99 : classOf(node);
      for (const child of next ? [children[1 - heavier]!, next] : children) {
        const isChain = child !== next && classOf(child) > 0 && classOf(child) < ownClass;
        if (!isChain) list(child, child === next);
        else {
          gotos.push(`${child} ${descend} chain-${child}`);
          write(`chain-${child}`, child, '-g');
        }
      }
    };
    if (keys.length > 0) list(prefix, chain !== ROOT);
    chains.set(chain, [...gotos, ...rules]);
  };
  write(ROOT, nodeAt(''), '-j');
  return chains;
}

// A few values for each half, and runs, make deep and crowded trees out of few keys.
const key = fc
  .oneof(fc.nat(2 ** BITS - 1), fc.nat(255), fc.constantFrom(...Array.from({ length: BITS }, (_, n) => 2 ** n)))
  .map((value) => value.toString(2).padStart(BITS, '0'));

describe('RadixTree', () => {
  it('writes up to three keys flat, and of more every other branch as a chain', () => {
    expect(sorted(freshChains(['00000000', '00000001', '11000000']))).toEqual([
      [ROOT, ['00000000', '00000001', '11000000']],
    ]);
    const sixteen = Array.from({ length: 16 }, (_, n) => n.toString(2).padStart(8, '0'));
    expect(sorted(freshChains(sixteen))).toEqual([
      ['chain-00000', ['000000 -g chain-000000', '00000100', '00000101', '00000110', '00000111']],
      ['chain-000000', ['00000000', '00000001', '00000010', '00000011']],
      ['chain-00001', ['000010 -g chain-000010', '00001100', '00001101', '00001110', '00001111']],
      ['chain-000010', ['00001000', '00001001', '00001010', '00001011']],
      [ROOT, ['00000 -j chain-00000', '00001 -j chain-00001']],
    ]);
  });

  it('is what its definition says, whatever led there', () => {
    const operation = fc.record({ key, put: fc.boolean(), render: fc.boolean() });
    fc.assert(
      fc.property(fc.array(key, { maxLength: 120 }), fc.array(operation, { maxLength: 120 }), (initial, operations) => {
        const tree = new RadixTree(text);
        const chains: Chains = new Map([[ROOT, []]]);
        const keys = new Set(initial);
        for (const each of initial) tree.put(bitsOf(each), each);
        for (const { key: each, put, render } of operations) {
          // Every second removal takes a key that is there.
          const target =
            put || keys.has(each) ? each : ([...keys][Number.parseInt(each, 2) % (keys.size || 1)] ?? each);
          if (put) keys.add(target);
          else keys.delete(target);
          if (put) tree.put(bitsOf(target), target);
          else tree.remove(bitsOf(target));
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
    for (const each of ['00000000', '11110000']) tree.put(bitsOf(each), each);
    tree.put(bitsOf('11110000'), '11110000 -j other');
    expect(follow(tree, new Map()).get(ROOT)).toEqual(['00000000', '11110000 -j other']);
    expect(tree.takeChanges().root).toBeUndefined();
  });

  it.each([
    ['fork at every bit', (n: number) => 2 ** (n % 31) + (n >> 5)],
    ['fill their space', (n: number) => n],
    ['are four times as many with each bit less in common', (n: number) => (n & 1023) << (2 * (n >> 10))],
  ])('never nests deeper than ten chains, also for keys that %s', (_, keyNumber) => {
    const values = new Set(Array.from({ length: 2 ** 15 }, (_, n) => keyNumber(n)));
    const keys = [...values].map((value) => value.toString(2).padStart(40, '0'));
    const chains = freshChains(keys);
    const depths = keys.map((each) => walk(chains, each).depth);
    expect(Math.max(...depths)).toBeLessThanOrEqual(10);
    expect(Math.max(...depths)).toBeGreaterThan(6);
  });
});

describe('RadixTree over 10,000 random addresses in a /12', () => {
  // 20 random bits, from a fixed seed.
  let seed = 1;
  const random = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return (seed >>> 12).toString(2).padStart(24, '0');
  };
  const keys = new Set<string>();
  while (keys.size < 10_000) keys.add(random());
  const tree = new RadixTree(text);
  for (const each of keys) tree.put(bitsOf(each), each);
  const chains = follow(tree, new Map());

  it('lets a packet meet few rules on average, and one to no key even fewer', () => {
    const walks = [...keys].map((each) => walk(chains, each));
    expect(walks.every(({ hit }) => hit !== undefined)).toBe(true);
    const mean = walks.reduce((sum, { met }) => sum + met, 0) / walks.length;
    expect(mean).toBeLessThanOrEqual(15.5);
    expect(Math.max(...walks.map(({ met }) => met))).toBeLessThanOrEqual(30);
    expect(chains.get(ROOT)).toHaveLength(2);
  });

  it('costs the same few steps for a change as a tree of 100', () => {
    const few = new RadixTree(text);
    for (const each of [...keys].slice(0, 100)) few.put(bitsOf(each), each);
    few.takeChanges();
    const cost = (of: RadixTree) => {
      const before = of.visited;
      for (let i = 0; i < 200; i++) {
        const added = random();
        of.put(bitsOf(added), added);
        of.takeChanges();
        of.remove(bitsOf(added));
        of.takeChanges();
      }
      return (of.visited - before) / 400;
    };
    expect(cost(tree)).toBeLessThan(150);
    expect(cost(tree)).toBeLessThan(4 * cost(few));
  });
});
