import { isDeepStrictEqual } from 'node:util';
import type { Expression, NftRule } from '../../netlink/nftables/index.ts';
import { type Extension, isFairDraw } from '../iptables/index.ts';
import { holdsUpTo } from './evaluate-rule.ts';
import type { NftSituation } from './surroundings.ts';

// Rules of which many draw for one and the same choice.

/** What asks for a protocol, and does nothing to the packet. */
const ASKING: ReadonlySet<Expression['kind']> = new Set(['payload', 'meta', 'cmp']);
/** What comes behind a draw and draws nothing. */
const ENDING: ReadonlySet<Expression['kind']> = new Set(['counter', 'target', 'verdict']);
/** What a rule consists of that draws an element of a map, and translates to it or remembers it if there is one. */
const DRAWING: ReadonlySet<Expression['kind']> = new Set(['payload', 'meta', 'numgen', 'lookup', 'nat', 'dynset']);

/** What a rule of iptables-nft asks for besides one draw; undefined: it is another rule (`Draws`). */
export function askedBeforeDrawing(
  { expressions }: NftRule,
  extensions: ReadonlyMap<Expression, Extension>,
): string | undefined {
  const at = drawAt(expressions);
  if (at < 0 || !isFairDraw(extensions.get(expressions[at]!)!)) return undefined;
  const before = expressions.slice(0, at).filter((one) => !isComment(one));
  const isOther = before.some(({ kind }) => !ASKING.has(kind)) || expressions.slice(at + 1).some(isNoEnd);
  return isOther ? undefined : JSON.stringify(before);
}

/** Whether that is so. */
export function holdsBeforeDrawing(rule: NftRule, situation: NftSituation): boolean {
  return holdsUpTo(drawAt(rule.expressions), rule, situation);
}

function drawAt(expressions: readonly Expression[]): number {
  return expressions.findIndex((one) => one.kind === 'match' && one.name === 'statistic');
}

const isComment = (one: Expression): boolean => one.kind === 'match' && one.name === 'comment';
const isNoEnd = (one: Expression): boolean => !ENDING.has(one.kind) && !isComment(one);

/**
 * Whether a rule draws in the same map as another one, does nothing where there is no element, and nothing more once
 * the other one found one.
 */
export function isSameDraw({ expressions }: NftRule, other: NftRule): boolean {
  const [last] = expressions.slice(-1);
  const isRemembering = last?.kind === 'dynset' && last.data !== undefined && !last.expressions?.length;
  if (
    (last?.kind !== 'nat' && !isRemembering) ||
    !expressions.some((one) => one.kind === 'numgen' && one.mode === 'random')
  )
    return false;
  return expressions.every(({ kind }) => DRAWING.has(kind)) && isDeepStrictEqual(expressions, other.expressions);
}
