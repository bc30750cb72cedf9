import { expect, it } from 'vitest';
import { type ForAll, refusingChain } from './refusal.ts';

const [refuse, accept, back] = (['refuse', 'accept', 'return'] as const).map((kind) => ({ kind }));
const to = (kind: 'jump' | 'goto', chain: string) => ({ kind, chain });
const SOME = undefined;
const CHAINS: Readonly<Record<string, readonly (ForAll | undefined)[]>> = {
  reject: [SOME, refuse],
  some: [SOME],
  spared: [SOME, accept, refuse],
  left: [back, refuse],
  outer: [to('jump', 'some'), to('goto', 'reject')],
  round: [to('jump', 'round')],
};

it.each([
  ['a rule of its own', [SOME, refuse], 'first'],
  ['a goto to a chain that refuses in the end', [SOME, to('goto', 'reject')], 'reject'],
  ['a jump to such a chain', [to('jump', 'reject'), accept], 'reject'],
  ['a chain that leads to such a chain', [to('jump', 'outer')], 'reject'],
  ['chains that refuse some', [to('jump', 'some'), to('jump', 'round')], undefined],
  ['a chain that lets all go on', [to('jump', 'left'), refuse], 'first'],
  ['a chain that has accepted all before', [to('jump', 'spared'), to('jump', 'reject')], undefined],
  ['what comes behind a goto', [to('goto', 'some'), refuse], undefined],
  ['what it accepts itself', [accept, refuse], undefined],
  ['nothing', [], undefined],
] as const)('with %s', (_, first, chain) => {
  expect(refusingChain('first', (name) => (name === 'first' ? first : (CHAINS[name] ?? [])))).toBe(chain);
});
