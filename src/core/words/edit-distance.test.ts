import fc from 'fast-check';
import { expect, it } from 'vitest';
import { editDistance, nearestWord } from './edit-distance.ts';

it.each([
  ['', '', 0],
  ['service', 'servcie', 1],
  ['labels', 'lables', 1],
  ['abcdef', 'badcfe', 3],
  ['port', 'ports', 1],
  ['port', 'node', 3],
])('from %j to %j is %i', (a, b, distance) => {
  expect(editDistance(a, b, 5)).toBe(distance);
  expect(editDistance(b, a, 5)).toBe(distance);
});

it('is what trying all ways finds', () => {
  const few = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 6 });
  fc.assert(fc.property(few, few, (a, b) => void expect(editDistance(a, b, 6)).toBe(tryAll(a, b))));
});

function tryAll(a: string, b: string): number {
  if (a === '' || b === '') return a.length + b.length;
  const [oneLess, otherLess] = [a.slice(1), b.slice(1)];
  const ways = [tryAll(oneLess, otherLess) + (a[0] === b[0] ? 0 : 1), tryAll(oneLess, b) + 1, tryAll(a, otherLess) + 1];
  const isSwap = a.length > 1 && a[0] === b[1] && a[1] === b[0];
  return Math.min(...ways, ...(isSwap ? [tryAll(a.slice(2), b.slice(2)) + 1] : []));
}

it('is not counted beyond the limit', () => {
  expect(editDistance('service', 'xyz', 2)).toBe(3);
});

it.each([
  ['target_port', 'targetPort'],
  ['clusterIp', 'clusterIP'],
  ['extrenalIPs', 'externalIPs'],
  ['port', undefined],
  ['sepc', undefined],
  ['x'.repeat(1000), undefined],
])('%j may stand for %j', (wrong, meant) => {
  expect(nearestWord(wrong, ['clusterIP', 'clusterIPs', 'targetPort', 'externalIPs'])).toBe(meant);
});
