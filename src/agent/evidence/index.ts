export { type Evidence, EvidencePart, isTrace } from './evidence-part.ts';
export { commitText, type RuleChange } from './rule-changes.ts';
export type { UnansweredFlow } from './unanswered-flows.ts';
