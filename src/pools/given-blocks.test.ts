import { expect, it } from 'vitest';
import { decodeObject, KINDS, type ObjectEvent } from '../kube/index.ts';
import { blockName } from './block-name.ts';
import { GivenBlocks } from './given-blocks.ts';

function event(type: ObjectEvent['type'], cidr: string, spec: object = {}, year?: number): ObjectEvent {
  const created = year === undefined ? {} : { creationTimestamp: `${year}-01-01T00:00:00Z` };
  const value = { metadata: { name: blockName(cidr), ...created }, spec: { cidr, node: 'me', ...spec } };
  return { type, object: decodeObject(KINDS.PodCIDRBlock, value).object! };
}

it('gives a node the blocks that are confirmed, or say nothing of it, as in manifests', () => {
  const given = new GivenBlocks();
  expect(given.apply(event('added', 'fd00::/122'))).toEqual(['me']);
  expect(given.apply(event('added', '10.0.0.64/26', { state: 'confirmed' }))).toEqual(['me']);
  expect(given.apply(event('added', '10.0.0.0/26', { state: 'pending' }))).toEqual([]);
  expect(given.apply(event('added', '10.0.0.128/26', { node: 'other' }))).toEqual(['other']);
  expect(given.of('me')).toEqual(['10.0.0.64/26', 'fd00::/122']);
  expect(given.of('nobody')).toEqual([]);
});

it('follows a block from pending to its end, and says nothing of what changes nothing', () => {
  const given = new GivenBlocks();
  given.apply(event('added', '10.0.0.0/26', { state: 'pending' }));
  expect(given.apply(event('updated', '10.0.0.0/26', { state: 'confirmed' }))).toEqual(['me']);
  expect(given.apply(event('updated', '10.0.0.0/26', { state: 'confirmed', holder: 'h' }))).toEqual([]);
  expect(given.apply(event('updated', '10.0.0.0/26', { state: 'releasing' }))).toEqual(['me']);
  expect(given.of('me')).toEqual([]);
  expect(given.apply(event('deleted', '10.0.0.0/26', { state: 'releasing' }))).toEqual([]);
});

it('tells both nodes when somebody edits a manifest, and lists the oldest block first', () => {
  const given = new GivenBlocks();
  given.apply(event('added', '10.0.0.0/26', {}, 2026));
  given.apply(event('added', '10.0.0.64/26', {}, 2025));
  expect(given.of('me')).toEqual(['10.0.0.64/26', '10.0.0.0/26']);
  expect(given.apply(event('updated', '10.0.0.0/26', { node: 'other' }))).toEqual(['me', 'other']);
  expect([given.of('me'), given.of('other')]).toEqual([['10.0.0.64/26'], ['10.0.0.0/26']]);
});
