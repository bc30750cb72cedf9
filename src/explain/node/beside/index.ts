export { type BesideRules, besideRulesOf } from './beside-rules.ts';
export { type CgroupPrograms, cgroupPrograms, programsAbove } from './bpf-programs.ts';
export { type LinkRules, linkRulesHere } from './link-rules.ts';
