import { expect, it } from 'vitest';
import { DescriptorLedger } from './descriptor-ledger.ts';

it('gives each descriptor to one of two threads: the one that has it open, or the one that ends it', () => {
  const ending = new DescriptorLedger();
  const thread = new DescriptorLedger(ending.memory);
  for (const fd of [0, 7, 9]) thread.note(fd);
  expect(thread.forget(7)).toBe(true);
  expect(ending.take()).toEqual([0, 9]);
  expect(thread.forget(9)).toBe(false);
  expect(ending.take()).toEqual([]);
});

it('leaves to the thread what it has no room for', () => {
  const ending = new DescriptorLedger();
  const thread = new DescriptorLedger(ending.memory);
  const many = Array.from({ length: 1000 }, (_, fd) => fd);
  for (const fd of many) thread.note(fd);
  const taken = new Set(ending.take());
  expect(taken.size).toBeGreaterThan(100);
  for (const fd of many) expect(thread.forget(fd)).toBe(!taken.has(fd));
});
