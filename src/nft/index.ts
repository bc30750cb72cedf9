export {
  addressIn,
  addressRegisters,
  clearMarkBits,
  inBlock,
  inLoopback,
  isDestinationTranslated,
  isLocalAddress,
  isMarked,
  isNew,
  isSourceTranslated,
  lastOf,
} from './match.ts';
export { DSTNAT, FILTER, MANGLE, RAW, SRCNAT } from './priorities.ts';
export { rejections } from './rejections.ts';
export { sameRuleBodies } from './same-rules.ts';
export { type ChainWithRules, type TableLayout, tableRepairs } from './table-repair.ts';
