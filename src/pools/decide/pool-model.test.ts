import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PoolWorld } from '../../../test/fakes/pool-world/index.ts';

/** Each ends with minutes of quiet, in which everything has to come to rest. All together take 10 s on a quiet machine. */
const RUNS = 1000;

it('no range is usable on two nodes, none is lost, and who needs one gets one', { timeout: 240_000 }, () => {
  const counts: Record<string, number> = {};
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const run = new PoolWorld(seed).play(60);
      expect(run.violations).toEqual([]);
      for (const [key, count] of Object.entries(run.counts)) counts[key] = (counts[key] ?? 0) + count;
    }),
    { numRuns: RUNS },
  );
  // The runs were bad enough for the rules to matter.
  for (const kind of ['claim', 'confirm', 'renew', 'release', 'remove']) {
    expect(counts[`${kind} done`]).toBeGreaterThan(RUNS / 4);
    expect(counts[`${kind} beaten`]).toBeGreaterThan(0);
  }
  expect(counts['lookForNode done']).toBeGreaterThan(RUNS);
});
