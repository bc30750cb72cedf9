import { describe, expect, it } from 'vitest';
import { bisect } from './bisect.ts';
import type { LeftOutPort } from './dataplane.ts';

const ports = (count: number) => Array.from({ length: count }, (_, n) => `shop/web-${n}`);

/** Searches again and again as the full syncs do. */
async function searches(count: number, isBad: (n: number) => boolean, bounds?: Parameters<typeof bisect>[4]) {
  const all = ports(count);
  const bad = new Set(all.filter((_, n) => isBad(n)));
  let leftOut: ReadonlyMap<string, LeftOutPort> = new Map();
  const rounds: { probes: number; leftOut: number; innocent: number }[] = [];
  do {
    let probes = 0;
    const refuses = async (group: readonly string[]) => {
      probes++;
      return group.some((key) => bad.has(key)) ? 'refused' : undefined;
    };
    leftOut = await bisect(all, leftOut, (key) => key, refuses, bounds);
    const innocent = [...leftOut.keys()].filter((key) => !bad.has(key)).length;
    rounds.push({ probes, leftOut: leftOut.size, innocent });
    for (const key of bad) expect(leftOut.has(key)).toBe(true);
  } while ([...leftOut.values()].some(({ untried }) => untried) && rounds.length < 100);
  return { rounds, leftOut, bad };
}

describe('bisect', () => {
  it('takes a few probes for each that is refused', async () => {
    const { rounds, leftOut } = await searches(10_000, (n) => n === 77 || n === 5000);
    expect([...leftOut.values()]).toEqual([
      { key: 'shop/web-77', name: 'shop/web-77', reason: 'refused' },
      { key: 'shop/web-5000', name: 'shop/web-5000', reason: 'refused' },
    ]);
    expect(rounds).toHaveLength(1);
    expect(rounds[0]!.probes).toBeLessThan(60);
  });

  it.each([
    ['in a row', (n: number) => n < 200],
    ['everywhere', (n: number) => n % 5 === 0],
  ])('ends within its bounds, and the next search goes on: 200 of 1,000, %s', async (_, isBad) => {
    const { rounds, leftOut, bad } = await searches(1000, isBad);
    for (const { probes } of rounds) expect(probes).toBeLessThanOrEqual(96);
    expect(rounds.map((round) => round.innocent)).toEqual(
      rounds.map((round) => round.innocent).toSorted((a, b) => b - a),
    );
    expect(new Set(leftOut.keys())).toEqual(bad);
    expect(rounds.length).toBeLessThan(30);
  });

  it('leaves out all it has not tried when its time is over', async () => {
    const bounds = { probes: 1, milliseconds: 60_000 };
    const refuses = async () => 'refused';
    const found = await bisect(ports(3), new Map(), (key) => key, refuses, bounds);
    expect([...found.values()].map(({ untried }) => untried)).toEqual([true, true, true]);
  });
});
