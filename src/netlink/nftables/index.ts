export { BatchEncoder } from './batch.ts';
export { isStaleGeneration, NftCommitError, type NftRefusal } from './commit-error.ts';
export type { CommitChange, NftCommit } from './commits/commit.ts';
export { watchCommits } from './commits/watch-commits.ts';
export { committedElsewhere, NOTHING_COMMITTED } from './committed-elsewhere.ts';
export type { Expression, LoadExpression, UnknownExpression, Verdict } from './expression/expression.ts';
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
  setPayload,
} from './expression/expressions.ts';
export { readExtensionHeader } from './expression/extension-header.ts';
export type { Register } from './expression/register.ts';
export { expressionKey, sameExpressions } from './expression/same-rule.ts';
export { nftFamily } from './family.ts';
export { ownCommits, shareOwnCommits } from './listening/absence.ts';
export { watchNftables } from './listening/monitor.ts';
export type { NftEvent } from './listening/monitor-event.ts';
export { addOwnPort, onOwnPorts, ownPorts, removeOwnPort } from './listening/own-ports.ts';
export { Nftables } from './nftables.ts';
export { type DatatypeName, datatype, typeLength } from './object/datatypes.ts';
export { intervalRanges, type KeyRange } from './object/intervals.ts';
export type { LinkChain } from './object/link-chain.ts';
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
  SetRef,
  TableRef,
} from './object/model.ts';
export type { NftReader, NftRuleset } from './ruleset.ts';
export { type TraceEvent, watchTraces } from './trace/watch-traces.ts';
