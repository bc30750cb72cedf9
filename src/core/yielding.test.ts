import { describe, expect, it } from 'vitest';
import { yielder } from './yielding.ts';

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
