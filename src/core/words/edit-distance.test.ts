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
