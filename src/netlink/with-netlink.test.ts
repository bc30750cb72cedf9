import { expect, it } from 'vitest';
import { closing, openTogether } from './with-netlink.ts';

function resource() {
  const events: string[] = [];
  return { events, close: () => void events.push('closed') };
}

it('closes when a function returns or throws', () => {
  const held = resource();
  expect(closing(held, ({ events }) => events.push('used'))).toBe(1);
  expect(held.events).toEqual(['used', 'closed']);
  const fail = () => {
    throw new Error('no');
  };
  expect(() => closing(held, fail)).toThrow('no');
  expect(held.events).toEqual(['used', 'closed', 'closed']);
});

it('closes when a promise is settled, not before', async () => {
  const held = resource();
  const kept = closing(held, async ({ events }) => {
    await Promise.resolve();
    events.push('used');
    return 7;
  });
  expect(held.events).toEqual([]);
  expect(await kept).toBe(7);
  expect(held.events).toEqual(['used', 'closed']);
  await expect(closing(held, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(held.events).toEqual(['used', 'closed', 'closed']);
});

it('opens several together, or leaves none open', () => {
  const [first, second] = [resource(), resource()];
  expect(openTogether((keep) => [keep(first), keep(second)])).toEqual([first, second]);
  expect(first.events).toEqual([]);
  const fail = (): never => {
    throw new Error('EMFILE');
  };
  expect(() => openTogether((keep) => [keep(first), keep(second), fail()])).toThrow('EMFILE');
  expect([first.events, second.events]).toEqual([['closed'], ['closed']]);
});
