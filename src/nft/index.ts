export {
  addressIn,
  addressRegisters,
  clearMarkBits,
  inBlock,
  isDestinationTranslated,
  isLocalAddress,
  isMarked,
  isNew,
  lastOf,
} from './match.ts';
export { DSTNAT, FILTER, RAW, SRCNAT } from './priorities.ts';
export { sameRuleBodies } from './same-rules.ts';
export { type ChainWithRules, type TableLayout, tableRepairs } from './table-repair.ts';
