export { evaluateTextRule } from './evaluate-rule.ts';
export type { Facts, InSet, IpSets, SetKey } from './facts.ts';
export { IpSetMembers, type IpSetReader } from './ipset-members.ts';
export { LegacyRules, type Saved } from './legacy-rules.ts';
export { printedTables } from './printed-table.ts';
