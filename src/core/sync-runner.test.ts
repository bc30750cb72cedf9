import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { SyncRunner, type SyncRunnerOptions } from './sync-runner.ts';

const MIN = 1_000;
const MAX = 3_600_000;

interface Run {
  readonly full: boolean;
  readonly began: number;
  ended: number | undefined;
}

/** A runner whose work takes the time and has the outcome that the test sets. */
class Bench {
  readonly clock = new FakeClock(0);
  readonly runs: Run[] = [];
  readonly failures: { error: unknown; full: boolean; retryInMs: number }[] = [];
  readonly runner: SyncRunner;
  takesMs = 0;
  outcome: () => void = () => {};

  constructor(options: Partial<SyncRunnerOptions> = {}) {
    this.runner = new SyncRunner({
      name: 'work',
      clock: this.clock,
      minIntervalMs: MIN,
      maxIntervalMs: MAX,
      retry: { firstMs: 1_000, maxMs: 30_000 },
      random: () => 0,
      run: (full) => this.#work(full),
      failed: (error, full, retryInMs) => this.failures.push({ error, full, retryInMs }),
      ...options,
    });
  }

  /** The runs so far: when each began, `F` for a full one. */
  get log(): string[] {
    return this.runs.map(({ began, full }) => `${began}${full ? 'F' : ''}`);
  }

  async #work(full: boolean): Promise<void> {
    const run: Run = { full, began: this.clock.now(), ended: undefined };
    this.runs.push(run);
    if (this.takesMs > 0) await new Promise<void>((done) => this.clock.setTimer(done, this.takesMs));
    run.ended = this.clock.now();
    this.outcome();
  }
}

const fail = (): never => {
  throw new Error('No luck');
};
let bench: Bench;

beforeEach(() => {
  bench = new Bench();
});

it('does nothing before start, then runs in full at once', async () => {
  bench.runner.request();
  await bench.clock.advance(10_000);
  expect(bench.log).toEqual([]);
  bench.runner.start();
  bench.runner.start();
  await bench.clock.advance(0);
  expect(bench.log).toEqual(['10000F']);
  await bench.clock.advance(MIN);
  expect(bench.log).toHaveLength(1);
});

describe('requests', () => {
  beforeEach(async () => {
    bench.runner.start();
    await bench.clock.advance(5_000);
    bench.runs.length = 0;
  });

  it('run at once after a quiet time', async () => {
    bench.runner.request();
    await bench.clock.advance(0);
    expect(bench.log).toEqual(['5000']);
  });

  it('coalesce within the least interval, counted from the end of the last run', async () => {
    bench.takesMs = 300;
    bench.runner.request();
    await bench.clock.advance(300);
    for (let i = 0; i < 5; i++) {
      bench.runner.request();
      await bench.clock.advance(100);
    }
    await bench.clock.advance(10_000);
    expect(bench.log).toEqual(['5000', '6300']);
  });

  it('made during a run lead to another run', async () => {
    bench.takesMs = 300;
    bench.runner.request();
    await bench.clock.advance(100);
    expect(bench.runs[0]!.ended).toBeUndefined();
    bench.runner.request();
    await bench.clock.advance(10_000);
    expect(bench.log).toEqual(['5000', '6300']);
  });

  it('for a full run are not weakened by others', async () => {
    bench.runner.request();
    bench.runner.requestFull();
    bench.runner.request();
    await bench.clock.advance(10_000);
    expect(bench.log).toEqual(['5000F']);
  });
});

it('makes a full run when the last one is too long ago, however many others there were', async () => {
  bench = new Bench({ maxIntervalMs: 10_000 });
  bench.runner.start();
  await bench.clock.advance(4_000);
  bench.runner.request();
  await bench.clock.advance(5_000);
  bench.runner.request();
  await bench.clock.advance(16_000);
  expect(bench.log).toEqual(['0F', '4000', '9000', '10000F', '20000F']);
});

describe('failures', () => {
  it('are retried in full, ever more slowly up to a limit, until one succeeds', async () => {
    bench.outcome = fail;
    bench.runner.start();
    await bench.clock.advance(100_000);
    expect(bench.log).toEqual(['0F', '1000F', '3000F', '7000F', '15000F', '31000F', '61000F', '91000F']);
    expect(bench.failures.map(({ retryInMs }) => retryInMs)).toEqual([
      1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000,
    ]);
    expect(bench.failures[0]!.error).toEqual(new Error('No luck'));

    bench.outcome = () => {};
    await bench.clock.advance(50_000);
    bench.runner.request();
    await bench.clock.advance(0);
    expect(bench.log.slice(8)).toEqual(['121000F', '150000']);
  });

  it('of a run for changes lead to a full run, and back-off starts again after a success', async () => {
    bench.runner.start();
    await bench.clock.advance(5_000);
    bench.outcome = fail;
    bench.runner.request();
    await bench.clock.advance(0);
    bench.outcome = () => {};
    await bench.clock.advance(5_000);
    expect(bench.log).toEqual(['0F', '5000', '6000F']);
    expect(bench.failures).toEqual([{ error: expect.anything(), full: false, retryInMs: 1_000 }]);
  });

  it('make requests wait for the retry, but not a request for a full run', async () => {
    bench = new Bench({ retry: { firstMs: 20_000, maxMs: 30_000 } });
    bench.outcome = fail;
    bench.runner.start();
    await bench.clock.advance(5_000);
    bench.runner.request();
    await bench.clock.advance(5_000);
    expect(bench.log).toEqual(['0F']);
    bench.outcome = () => {};
    bench.runner.requestFull();
    await bench.clock.advance(0);
    expect(bench.log).toEqual(['0F', '10000F']);
  });

  it('never come sooner than the least interval, and jitter only shortens the wait', async () => {
    bench = new Bench({ random: () => 0.999, minIntervalMs: 900, retry: { firstMs: 1_000, maxMs: 30_000 } });
    bench.outcome = fail;
    bench.runner.start();
    await bench.clock.advance(3_000);
    expect(bench.failures[0]!.retryInMs).toBe(800);
    expect(bench.log).toEqual(['0F', '900F', '2500F']);
  });

  it('include a synchronous throw', async () => {
    bench = new Bench({ run: fail });
    bench.runner.start();
    await bench.clock.advance(0);
    expect(bench.failures).toHaveLength(1);
  });
});

describe('stop', () => {
  it('waits for the run in flight and starts no other', async () => {
    bench.takesMs = 500;
    bench.runner.start();
    await bench.clock.advance(100);
    bench.runner.request();
    let stopped = false;
    const stopping = bench.runner.stop().then(() => {
      stopped = true;
    });
    await bench.clock.advance(300);
    expect(stopped).toBe(false);
    await bench.clock.advance(200);
    await stopping;
    bench.runner.requestFull();
    bench.runner.start();
    await bench.clock.advance(MAX * 2);
    expect(bench.log).toEqual(['0F']);
  });

  it('returns at once when nothing runs, and calls off a waiting run', async () => {
    bench.runner.start();
    await bench.clock.advance(100);
    bench.runner.request();
    await bench.runner.stop();
    await bench.clock.advance(MAX * 2);
    expect(bench.log).toEqual(['0F']);
  });
});

it.each([-1_000_000, 1_000_000])('neither waits nor hurries when the calendar is moved by %i ms', async (byMs) => {
  bench = new Bench({ maxIntervalMs: 10_000 });
  bench.runner.start();
  await bench.clock.advance(0);
  bench.clock.setCalendar(byMs);
  bench.runner.request();
  await bench.clock.advance(MIN - 1);
  expect(bench.log).toEqual(['0F']);
  await bench.clock.advance(10_000);
  expect(bench.log).toEqual(['0F', '1000', '10000F']);
});

it('under any load: runs never overlap, keep their distance, and follow every request', async () => {
  const action = fc.record({
    waitMs: fc.constantFrom(0, 1, 250, 999, 1_000, 1_001, 5_000),
    what: fc.constantFrom('request', 'request', 'request', 'full', 'nothing'),
    takesMs: fc.constantFrom(0, 10, 700, 2_500),
    fails: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 15 }), async (actions) => {
      const target = new Bench();
      const requests: { at: number; full: boolean }[] = [];
      target.runner.start();
      for (const { waitMs, what, takesMs, fails } of actions) {
        target.takesMs = takesMs;
        target.outcome = fails ? fail : () => {};
        await target.clock.advance(waitMs);
        if (what === 'nothing') continue;
        requests.push({ at: target.clock.now(), full: what === 'full' });
        if (what === 'full') target.runner.requestFull();
        else target.runner.request();
      }
      target.outcome = () => {};
      target.takesMs = 0;
      await target.clock.advance(60_000);

      for (const [index, run] of target.runs.entries()) {
        expect(run.ended).toBeDefined();
        const previous = target.runs[index - 1];
        if (previous) expect(run.began - previous.ended!).toBeGreaterThanOrEqual(MIN);
      }
      for (const { at, full } of requests) {
        expect(target.runs.some((run) => run.began >= at && (run.full || !full))).toBe(true);
      }
    }),
    { numRuns: 200 },
  );
});

describe('checks', () => {
  const EVERY = 10_000;
  let checks: number[];
  let busyMs: number;

  beforeEach(async () => {
    checks = [];
    busyMs = 0;
    bench = new Bench({
      check: {
        intervalMs: EVERY,
        async run() {
          checks.push(bench.clock.now());
          if (busyMs > 0) await new Promise<void>((done) => bench.clock.setTimer(done, busyMs));
        },
        failed: fail,
      },
    });
    bench.runner.start();
    await bench.clock.advance(0);
  });

  it('come at their interval, counted from the full run, and stop with the runner', async () => {
    await bench.clock.advance(25_000);
    expect(checks).toEqual([10_000, 20_000]);
    expect(bench.log).toEqual(['0F']);
    await bench.runner.stop();
    await bench.clock.advance(60_000);
    expect(checks).toHaveLength(2);
  });

  it('do not overlap with runs, and what is asked for meanwhile runs right after', async () => {
    busyMs = 3_000;
    await bench.clock.advance(11_000);
    bench.runner.request();
    await bench.clock.advance(1_999);
    expect(bench.log).toEqual(['0F']);
    await bench.clock.advance(1);
    expect(bench.log).toEqual(['0F', '13000']);
  });

  it('come at once when asked for, once more when asked for meanwhile, and not again after a full run', async () => {
    busyMs = 1_000;
    await bench.clock.advance(2_000);
    bench.runner.requestCheck();
    await bench.clock.advance(500);
    bench.runner.requestCheck();
    await bench.clock.advance(3_000);
    expect(checks).toEqual([2_000, 3_000]);
    bench.runner.requestFull();
    bench.runner.requestCheck();
    await bench.clock.advance(3_000);
    expect(bench.log).toEqual(['0F', '5500F']);
    expect(checks).toHaveLength(2);
  });

  it('let a change that waits for the least interval go first', async () => {
    await bench.clock.advance(9_500);
    bench.runner.request();
    await bench.clock.advance(100);
    bench.runner.request();
    await bench.clock.advance(900);
    expect(bench.log).toEqual(['0F', '9500', '10500']);
    expect(checks).toEqual([10_500]);
  });

  it('are made even if requests never cease', async () => {
    bench.outcome = () => bench.runner.request();
    bench.runner.request();
    await bench.clock.advance(50_000);
    expect(checks).toEqual([20_000, 40_000]);
  });

  it('are not made between a failure and its retry', async () => {
    bench.outcome = fail;
    bench.runner.requestFull();
    await bench.clock.advance(9_000);
    bench.outcome = () => {};
    const mended = bench.clock.now();
    await bench.clock.advance(40_000);
    expect(checks.length).toBeGreaterThan(1);
    expect(checks[0]).toBeGreaterThanOrEqual(mended + EVERY);
  });

  it('that ask for a full run get it at once', async () => {
    const run = async () => bench.runner.requestFull();
    bench = new Bench({ check: { intervalMs: EVERY, run, failed: fail } });
    bench.runner.start();
    await bench.clock.advance(25_000);
    expect(bench.log).toEqual(['0F', '10000F', '20000F']);
  });

  it.each<[string, () => Promise<void>]>([
    ['throw', fail],
    ['reject', async () => fail()],
    [
      'reject late',
      () => new Promise<void>((_, reject) => bench.clock.setTimer(() => reject(new Error('No luck')), 5)),
    ],
  ])('that %s are told, end nothing, and come again in their time', async (_, run) => {
    const told: unknown[] = [];
    bench = new Bench({ check: { intervalMs: EVERY, run, failed: (error) => told.push(error) } });
    bench.runner.start();
    await bench.clock.advance(3 * EVERY + 50);
    expect(told).toEqual(Array(3).fill(new Error('No luck')));
    bench.runner.request();
    await bench.clock.advance(0);
    expect(bench.log).toEqual(['0F', '30050']);
    await bench.runner.stop();
  });
});

it('goes on when those it tells of failures throw', async () => {
  bench = new Bench({ check: { intervalMs: 5_000, run: fail, failed: fail }, failed: fail });
  bench.outcome = fail;
  bench.runner.start();
  await bench.clock.advance(2_000);
  bench.outcome = () => {};
  await bench.clock.advance(20_000);
  bench.runner.request();
  await bench.clock.advance(MIN);
  expect(bench.runs.length).toBeGreaterThanOrEqual(4);
  await bench.runner.stop();
});
