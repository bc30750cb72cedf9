import { expect, it } from 'vitest';
import { type Figure, isMissed, oursAtMost, ratioAtLeast, ratioAtMost } from './figure.ts';
import { inTurns, pairedTurns } from './statistics.ts';

const figure = (overrides: Partial<Figure>): Figure => ({
  what: 'something',
  unit: 'ms',
  ours: 10,
  peer: 10,
  peerName: 'somebody',
  ...overrides,
});

it.each<[what: string, figure: Partial<Figure>, missed: boolean]>([
  ['without a target', { ours: 100 }, false],
  ['below the ratio', { target: ratioAtMost(1) }, false],
  ['above the ratio', { ours: 11, target: ratioAtMost(1) }, true],
  ['above the ratio, by less than it strayed', { ours: 11, spread: 0.11, target: ratioAtMost(1) }, false],
  ['above the ratio, by more than it strayed', { ours: 12, spread: 0.11, target: ratioAtMost(1) }, true],
  ['a rate that is too low', { ours: 9, target: ratioAtLeast(0.95) }, true],
  ['a rate that is too low, by less than it strayed', { ours: 9, spread: 0.06, target: ratioAtLeast(0.95) }, false],
  ['our own figure, whatever the peer', { ours: 40, peer: 1, target: oursAtMost(48) }, false],
  ['our own figure has no spread', { ours: 49, spread: 5, target: oursAtMost(48) }, true],
  ['no peer', { ours: 49, peer: undefined, target: oursAtMost(48) }, true],
  ['a ratio that is not a number', { ours: 0, peer: 0, target: ratioAtMost(1) }, true],
])('a target is missed or not: %s', (_what, overrides, missed) => {
  expect(isMissed(figure(overrides))).toBe(missed);
});

it('measures how far the ratio strays within a run', () => {
  const steady = Array.from({ length: 80 }, () => 10);
  expect(inTurns(steady, steady)).toEqual({ ours: 10, peer: 10, spread: 0 });
  // Half of the run at twice the time, of one side only: the pieces say 1 or 2.
  const troubled = steady.map((ms, n) => (n < 40 ? ms : 2 * ms));
  expect(inTurns(troubled, steady).spread).toBe(0.5);
  // What disturbs both is no noise.
  expect(inTurns(troubled, troubled).spread).toBe(0);
  // One sample in all.
  expect(inTurns([3], [2])).toEqual({ ours: 3, peer: 2, spread: 0 });
});

it('compares turns round by round: what disturbs some rounds of both does not move the ratio', () => {
  // Four kinds of rounds, the machine up to four times as slow; ours takes a tenth more in each.
  const peer = Array.from({ length: 80 }, (_, round) => 10 * (1 + (round % 4)));
  const ours = peer.map((us) => us * 1.1);
  const { ours: one, peer: other, spread } = pairedTurns(ours, peer);
  expect(other).toBe(30);
  expect(one / other).toBeCloseTo(1.1);
  expect(spread).toBeCloseTo(0);
  // A round of ours alone that was disturbed, and one of the peer: neither counts for more than one round.
  expect(pairedTurns([400, ...ours.slice(1, -1), 1], peer).ours).toBeCloseTo(33);
});
