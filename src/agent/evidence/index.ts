export { type Evidence, EvidencePart } from './evidence-part.ts';
export type { RuleChange } from './rule-changes.ts';
export type { UnansweredFlow, UnansweredQuestion } from './unanswered-flows.ts';
