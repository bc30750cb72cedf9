export { ForeignWatch, type ForeignWatchOptions, type WatchNftables } from './foreign-watch.ts';
export {
  addressIn,
  addressRegisters,
  clearMarkBits,
  inBlock,
  inBlockOf,
  inLoopback,
  isConfirmed,
  isDestinationTranslated,
  isFamily,
  isLocalAddress,
  isMarked,
  isNew,
  isSourceTranslated,
  LOOPBACK,
} from './match.ts';
export { DSTNAT, FILTER, MANGLE, RAW, SRCNAT } from './priorities.ts';
export { type ForAll, refusingChain } from './refusal.ts';
export { rejections } from './rejections.ts';
export { sameBase, sameRuleBodies } from './same-rules.ts';
export { type ChainWithRules, holdsNothingElse, type TableLayout, tableRepairs } from './table-repair.ts';
