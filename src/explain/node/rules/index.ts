export { type PodRules, podRulesIn } from './pod-rules.ts';
export { type RulesHere, readRules } from './rule-sources.ts';
