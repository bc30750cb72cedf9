import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Journey, UnreliableApi } from '../../../test/fakes/api-server/index.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { Clock } from '../../core/index.ts';
import { LeaseKeeper } from './lease-keeper.ts';

// Several keepers of one Lease behind a bad network, each with a clock of its own: another zero, another speed, another
// calendar. All is decided by one seed.

const NAMES = ['a', 'b', 'c', 'd'] as const;
/** Renew deadline and duration are 10 and 15: speeds from 0.85 to 1.15 differ by less than that. */
const SPEEDS = { slowest: 0.85, fastest: 1.15 } as const;

interface Run {
  readonly acquired: number;
  readonly lost: number;
  /** The moments at which two held the lease. */
  readonly overlaps: readonly string[];
  /** Who held it at the end, after the network had been well for a while. */
  readonly last: readonly string[];
}

/** mulberry32: numbers from 0 to 1 (exclusive). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function skewed(clock: FakeClock, random: () => number): Clock {
  const zero = random() * 1e9;
  const speed = SPEEDS.slowest + random() * (SPEEDS.fastest - SPEEDS.slowest);
  // A calendar that is years off, and may stand still.
  const calendarZero = random() * 1e12;
  const calendarSpeed = random() < 0.3 ? 0 : speed;
  return {
    now: () => zero + clock.now() * speed,
    wallTime: () => Math.floor(calendarZero + clock.now() * calendarSpeed),
    setTimer: (fn, ms) => clock.setTimer(fn, ms / speed),
  };
}

/** Bad in spells of twenty seconds: then it loses and doubles most; otherwise it is slow now and then. */
function badNetwork(clock: FakeClock, random: () => number, isWell: () => boolean): () => Journey {
  return () => {
    if (isWell()) return { arrivals: [random() * 100], answerMs: random() * 100 };
    const trouble = Math.floor(clock.now() / 20_000) % 3 === 0 ? 0.8 : 0.1;
    const isTroubled = () => random() < trouble;
    const copies = isTroubled() ? Math.floor(random() * 3) : 1;
    // Up to twice the time after which a keeper gives a request up.
    const delay = () => random() * (isTroubled() ? 12_000 : 100);
    return { arrivals: Array.from({ length: copies }, delay), answerMs: random() < trouble / 3 ? undefined : delay() };
  };
}

async function run(seed: number): Promise<Run> {
  const random = randomFrom(seed);
  const clock = new FakeClock(1_000_000);
  let isWell = false;
  const api = new UnreliableApi(
    clock,
    badNetwork(clock, random, () => isWell),
  );
  const counts = { acquired: 0, lost: 0 };
  const overlaps: string[] = [];
  const living = new Map<string, LeaseKeeper>();
  // Those that are stopping are looked at, too.
  const all: [name: string, keeper: LeaseKeeper][] = [];
  const look = (after: string) => {
    const holders = all.filter(([, { isHeld }]) => isHeld).map(([name]) => name);
    if (holders.length > 1) overlaps.push(`${clock.now()} ms, after ${after}: ${holders.join(' and ')}`);
    return holders;
  };
  const begin = (name: string) => {
    const keeper = new LeaseKeeper({
      client: api,
      namespace: 'kube-system',
      name: 'agent',
      identity: `${name}-${all.length}`,
      clock: skewed(clock, random),
      random,
      retrySeconds: 1,
    });
    living.set(name, keeper);
    all.push([name, keeper]);
    keeper.start({
      acquired: () => {
        counts.acquired++;
        look(`${name} acquired`);
      },
      lost: () => counts.lost++,
      failed: () => {},
    });
  };
  for (const name of NAMES) begin(name);
  const ending: Promise<void>[] = [];
  for (let second = 0; second < 300; second++) {
    await clock.advance(1000);
    look('a second');
    if (random() < 0.95) continue;
    // One stops, the holder if there is one, and gives the lease back if the network lets it. Its successor begins at once.
    const name = look('a stop')[0] ?? NAMES[Math.floor(random() * NAMES.length)]!;
    ending.push(living.get(name)!.stop());
    begin(name);
  }
  isWell = true;
  for (let second = 0; second < 90; second++) {
    await clock.advance(1000);
    look('a second');
  }
  const last = look('the end');
  for (const keeper of living.values()) ending.push(keeper.stop());
  await clock.advance(20_000);
  await Promise.all(ending);
  return { ...counts, overlaps, last };
}

it('at most one holds the lease at any moment, and somebody does when all is well', { timeout: 60_000 }, async () => {
  let acquired = 0;
  let lost = 0;
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const outcome = await run(seed);
      expect(outcome.overlaps).toEqual([]);
      expect(outcome.last).toHaveLength(1);
      acquired += outcome.acquired;
      lost += outcome.lost;
    }),
    { numRuns: 20 },
  );
  // The network was bad enough for the rules to matter.
  expect(acquired).toBeGreaterThan(100);
  expect(lost).toBeGreaterThan(20);
});
