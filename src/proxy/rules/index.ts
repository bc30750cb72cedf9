export * from './chain-set.ts';
export { ClaimedTree, type TreeKey } from './claims.ts';
export { chainDrift, jumpDrift, missingJumps, surplusJumps } from './drift/rule-drift.ts';
export {
  acceptForwarded,
  MASQUERADE,
  type MarkText,
  markText,
  masqueradeMarked,
  nodePortEntry,
  refuse,
} from './fixed-rules.ts';
export {
  type IptablesTool,
  type IptablesVariant,
  iptablesTool,
  programName,
  whyIptablesMissing,
} from './iptables-tool.ts';
export { LegacyWatch } from './legacy/legacy-watch.ts';
export { podMatch } from './local-detector.ts';
export { kernelTables, NftTables, tableDrift } from './nft/nft-tables.ts';
export type { Key, KeySpace } from './radix.ts';
export * from './restore.ts';
export { isRestoreFailure, RESTORE_METRICS } from './restore-metrics.ts';
export { formatChance, formatRule, PROXY_JUMP, type RuleParts } from './rule.ts';
export { returnUnlessSameAddress } from './same-address.ts';
export { parseList, parseSave, type SavedTable, targetOf } from './save.ts';
export { UnreadableTableError } from './unreadable.ts';
export { bothVariants, isUsable, mayHoldRules, usableVariants, type VariantSettings } from './usable-variants.ts';
export { detectVariant } from './variant.ts';
