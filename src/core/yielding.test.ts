import { describe, expect, it } from 'vitest';
import { atOnce, inSlices, type Steps, yielder } from './yielding.ts';

describe('yielder', () => {
  it('asks for no wait while the slice lasts', () => {
    let time = 100;
    const rest = yielder(10, () => time);
    time = 109.9;
    expect(rest()).toBeUndefined();
  });

  it('gives the event loop a turn when the slice is over, and begins the next slice behind it', async () => {
    let time = 0;
    const rest = yielder(10, () => time);
    const turns: string[] = [];
    setImmediate(() => turns.push('something else'));
    time = 10;
    const wait = rest();
    time = 50;
    await wait;
    turns.push('we go on');
    expect(turns).toEqual(['something else', 'we go on']);
    time = 59;
    expect(rest()).toBeUndefined();
    time = 60;
    expect(rest()).toBeInstanceOf(Promise);
  });

  it('gives two pieces of work different turns', async () => {
    let turn = 0;
    let going = true;
    const next = () => {
      turn++;
      if (going) setImmediate(next);
    };
    setImmediate(next);
    const work = async () => {
      const rest = yielder(0);
      const turns: number[] = [];
      for (let n = 0; n < 20; n++) {
        await rest();
        turns.push(turn);
      }
      return turns;
    };
    const turns = (await Promise.all([work(), work(), work()])).flat();
    going = false;
    expect(new Set(turns).size).toBe(60);
  });

  it('gives work that begins in a turn what other work has left of it', async () => {
    const spent = yielder(1);
    while (!spent());
    expect(yielder(1)()).toBeInstanceOf(Promise);
    await spent();
    expect(yielder(60_000)()).toBeUndefined();
  });

  it('lets timers fire in between', async () => {
    const rest = yielder(0);
    let fired = false;
    setTimeout(() => {
      fired = true;
    }, 0);
    const deadline = performance.now() + 5000;
    while (!fired && performance.now() < deadline) await rest();
    expect(fired).toBe(true);
  });
});

describe('steps', () => {
  function* count(to: number, seen: number[]) {
    for (let n = 0; n < to; n++) {
      seen.push(n);
      yield;
    }
    return seen.length;
  }

  it('are done at once', () => {
    const seen: number[] = [];
    expect(atOnce(count(3, seen))).toBe(3);
    expect(seen).toEqual([0, 1, 2]);
  });

  it('are done in slices, and others have their turn after each', async () => {
    const seen: number[] = [];
    let turns = 0;
    let going = true;
    const turn = () => {
      turns++;
      if (going) setImmediate(turn);
    };
    setImmediate(turn);
    expect(await inSlices(count(5, seen), yielder(0))).toBe(5);
    going = false;
    expect(seen).toEqual([0, 1, 2, 3, 4]);
    expect(turns).toBeGreaterThanOrEqual(4);
  });

  it('throw what they throw', async () => {
    // biome-ignore lint/correctness/useYield: work that ends before its first pause
    function* failing(): Steps<void> {
      throw new Error('refused');
    }
    await expect(inSlices(failing())).rejects.toThrow('refused');
    expect(() => atOnce(failing())).toThrow('refused');
  });
});
