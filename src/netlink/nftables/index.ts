export { BatchEncoder } from './batch.ts';
export { isBusy, isStaleGeneration, NftCommitError, type NftRefusal } from './commit-error.ts';
export type {
  CtKey,
  Expression,
  FibFlag,
  MetaKey,
  NatFlag,
  Register,
  Verdict,
} from './expression/expression.ts';
export {
  accept,
  cmp,
  counter,
  ct,
  drop,
  fib,
  goto,
  hostOrder32,
  immediate,
  interfaceName,
  jump,
  lookup,
  meta,
  networkOrder16,
  payload,
  random,
  returnToCaller,
  setMarkBits,
} from './expression/expressions.ts';
export { expressionKey, sameExpressions } from './expression/same-rule.ts';
export { nftFamily } from './family.ts';
export { watchNftables } from './monitor.ts';
export type { NftEvent } from './monitor-event.ts';
export { Nftables } from './nftables.ts';
export { type Datatype, type DatatypeName, datatype, typeLength } from './object/datatypes.ts';
export { intervalElements, intervalRanges, type KeyRange } from './object/intervals.ts';
export type {
  BaseChain,
  ChainRef,
  CommitOptions,
  CommitReport,
  CounterRef,
  NftChain,
  NftChange,
  NftCounter,
  NftElement,
  NftElements,
  NftFamily,
  NftHook,
  NftObject,
  NftRef,
  NftRule,
  NftSet,
  NftTable,
  RuleRef,
  SetFlag,
  SetRef,
  TableRef,
} from './object/model.ts';
export type { NftReader, NftRuleset, NftWriter } from './ruleset.ts';
