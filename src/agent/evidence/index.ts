export { type Evidence, EvidencePart } from './evidence-part.ts';
export { commitText, type RuleChange } from './rule-changes.ts';
export type { UnansweredFlow } from './unanswered-flows.ts';
