export { hostOf, interfaceOf } from './host.ts';
export { type LocalPod, NodeView } from './node-view.ts';
export type { RulesHere } from './rule-sources.ts';
