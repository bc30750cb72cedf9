import { expect, it } from 'vitest';
import { countUnusable } from './source.ts';

const message = 'odd';

it('an object that cannot be used counts once, whatever is wrong with it', () => {
  const web = { object: 'Service shop/web', message };
  expect(countUnusable([])).toBe(0);
  expect(
    countUnusable([
      { where: 'a.yaml:3', ...web },
      { where: 'a.yaml:7', ...web },
      { where: 'b.yaml:3', ...web },
      { where: 'b.yaml:9', object: 'Service shop/other', message },
      // How many these are nobody knows.
      { where: 'c.yaml:1', message },
      { where: 'c.yaml:5', message },
    ]),
  ).toBe(4);
});

it('those too many to be named count as well, and what is in force or merely not read does not', () => {
  expect(countUnusable([{ where: 'a.yaml', message, others: 990 }])).toBe(990);
  expect(countUnusable([{ where: 'a.yaml:3', object: 'Service shop/web', message, inForce: true }])).toBe(0);
  expect(countUnusable([{ where: 'services', message, unread: true }])).toBe(0);
});
