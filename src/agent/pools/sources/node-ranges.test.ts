import { beforeEach, expect, it } from 'vitest';
import { nodeObject } from '../../../../test/fakes/routes/node-objects.ts';
import { type Cidr, formatCidr, parseCidr } from '../../../core/index.ts';
import type { ObjectEvent } from '../../../kube/index.ts';
import { NodeRanges } from './node-ranges.ts';

let living: string[];
let reserved: string[];
let changes: number;
let ranges: NodeRanges;

beforeEach(async () => {
  living = [];
  reserved = [];
  changes = 0;
  const used = (range: Cidr) => reserved.filter((text) => text === formatCidr(range)).length;
  ranges = new NodeRanges({ nodeName: 'me', fixed: [], living: () => living.map(parseCidr), used });
  await ranges.start(() => changes++);
});

function tell(podCidrs: readonly string[], name = 'me', type: ObjectEvent['type'] = 'updated'): readonly string[] {
  return ranges.event({ type, object: nodeObject({ name, ips: [], podCidrs }) });
}

function own() {
  const { sets, held, lacking } = ranges.own();
  return { sets: sets.map((set) => set.map(formatCidr)), held: held.map(formatCidr), lacking };
}

it('are the podCIDRs of the Node, and until then a reason', () => {
  expect(own()).toEqual({ sets: [], held: [], lacking: 'there is no Node object "me"' });
  expect(tell([])).toEqual(['me']);
  expect(own().lacking).toContain('Node "me" has no podCIDRs: kube-controller-manager gives them');
  expect(tell(['10.1.0.0/24', 'fd00:1::/64'])).toEqual(['me']);
  expect(own()).toEqual({
    sets: [['10.1.0.0/24'], ['fd00:1::/64']],
    held: ['10.1.0.0/24', 'fd00:1::/64'],
    lacking: '',
  });
});

it('say nothing of other nodes: their Node objects do', () => {
  expect(tell(['10.2.0.0/24'], 'other')).toEqual([]);
  expect(ranges.ofNode(nodeObject({ name: 'other', ips: [], podCidrs: ['10.2.0.0/24'] }))).toBeUndefined();
});

it('of a node that is registered again: new pods get the new range, the old one is kept until its last pod is gone', () => {
  tell(['10.1.0.0/24']);
  living = ['10.1.0.0/24'];
  tell([], 'me', 'deleted');
  expect(own()).toMatchObject({ sets: [], held: ['10.1.0.0/24'] });
  tell(['10.9.0.0/24']);
  const both = ['10.9.0.0/24', '10.1.0.0/24'];
  expect(own()).toEqual({ sets: [['10.9.0.0/24']], held: both, lacking: '' });
  expect(ranges.ofNode(nodeObject({ name: 'me', ips: [], podCidrs: ['10.9.0.0/24'] }))).toEqual(both);
  living = ['10.9.0.0/24', '10.1.0.0/24'];
  ranges.useChanged();
  expect([changes, ranges.isGone(parseCidr('10.1.0.0/24'))]).toEqual([0, false]);
  living = ['10.9.0.0/24'];
  ranges.useChanged();
  expect(changes).toBe(1);
  expect(own()).toEqual({ sets: [['10.9.0.0/24']], held: ['10.9.0.0/24'], lacking: '' });
  expect(['10.1.0.0/24', '10.9.0.0/24', '10.5.0.0/24'].map((range) => ranges.isGone(parseCidr(range)))).toEqual([
    true,
    false,
    false,
  ]);
});

it('stay those of pods that live while there is no Node object', () => {
  tell(['10.1.0.0/24']);
  tell([], 'me', 'deleted');
  expect(own()).toMatchObject({ sets: [], held: ['10.1.0.0/24'] });
  expect(ranges.isGone(parseCidr('10.1.0.0/24'))).toBe(false);
  tell(['10.1.0.0/24']);
  expect(own()).toEqual({ sets: [['10.1.0.0/24']], held: ['10.1.0.0/24'], lacking: '' });
});

it('are kept for pods that left no note, as long as they have addresses', () => {
  tell(['10.1.0.0/24']);
  reserved = ['10.1.0.0/24'];
  tell(['10.9.0.0/24']);
  expect(own().held).toEqual(['10.9.0.0/24', '10.1.0.0/24']);
  reserved = [];
  ranges.useChanged();
  expect(own().held).toEqual(['10.9.0.0/24']);
});

it('do not overlap: a range that the Node had within another that pods have is no range of its own', () => {
  tell(['10.1.0.0/24', 'fd00:1::/64']);
  living = ['10.1.0.0/24'];
  tell(['10.1.0.0/29']);
  reserved = ['10.1.0.0/29', '10.1.0.0/24'];
  expect(own().held).toEqual(['10.1.0.0/29', '10.1.0.0/24']);
  tell(['10.9.0.0/24']);
  expect(own().held).toEqual(['10.9.0.0/24', '10.1.0.0/24']);
  tell(['10.0.0.0/8']);
  expect(own().held).toEqual(['10.0.0.0/8']);
  // The gateway of the pods of before.
  expect(ranges.isGone(parseCidr('10.1.0.0/24'))).toBe(false);
});

it('of IPv6 that begin alike have one gateway, which is that of the present one', () => {
  for (const [before, after] of [
    ['fd00:1::/64', 'fd00:1::/65'],
    ['fd00:1::/65', 'fd00:1::/64'],
  ] as const) {
    living = [before];
    tell([before]);
    tell([after]);
    expect(own().held).toEqual([after]);
    expect(ranges.isGone(parseCidr(before))).toBe(true);
  }
});

it('find pods of an earlier range after a restart, too', () => {
  living = ['10.1.0.0/24'];
  tell(['10.9.0.0/24']);
  expect(own().held).toEqual(['10.9.0.0/24', '10.1.0.0/24']);
});

it('are those of the flag in place of the Node’s', () => {
  const fixed = new NodeRanges({ nodeName: 'me', fixed: [parseCidr('10.3.0.0/24')], living: () => [], used: () => 0 });
  const node = nodeObject({ name: 'me', ips: [], podCidrs: ['10.1.0.0/24'] });
  fixed.event({ type: 'added', object: node });
  expect(fixed.own().sets).toEqual([[parseCidr('10.3.0.0/24')]]);
  expect(fixed.ofNode(node)).toBeUndefined();
});
