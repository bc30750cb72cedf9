import fc from 'fast-check';
import { expect, it } from 'vitest';
import { EndpointBudget } from './endpoint-budget.ts';

it('cuts nobody while all fits, then the largest first', () => {
  const budget = new EndpointBudget(100, 64);
  budget.change(0, 64);
  budget.change(0, 30);
  expect(budget.cap).toBe(64);
  budget.change(0, 10);
  expect(budget.cap).toBe(32);
  budget.change(64, 0);
  expect(budget.cap).toBe(64);
});

it('gives the same cap whatever the order in which Services came, and keeps within the total', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(64), { maxLength: 50 }), fc.array(fc.nat(64), { maxLength: 10 }), (wanted, passing) => {
      const budget = new EndpointBudget(100, 64);
      for (const count of passing) budget.change(0, count);
      for (const count of wanted) budget.change(0, count);
      for (const count of passing) budget.change(count, 0);
      const other = new EndpointBudget(100, 64);
      for (const count of wanted.toReversed()) other.change(0, count);
      expect(budget.cap).toBe(other.cap);
      const given = wanted.reduce((sum, count) => sum + Math.min(count, budget.cap), 0);
      expect(given).toBeLessThanOrEqual(100);
    }),
  );
});
