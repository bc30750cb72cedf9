export { hostOf, interfaceOf } from './host.ts';
export type { LocalPod } from './local-pods.ts';
export { masqueradeSource } from './masquerade-source.ts';
export { otherNamespaces } from './namespaces.ts';
export { LOOPBACK_INDEX, NodeView } from './node-view.ts';
export { type Attempt, type AttemptResult, tryAttempts } from './probe.ts';
export { type RulesHere, readRules } from './rule-sources.ts';
export type { PortUse, TakenPorts, Tracking } from './tracking.ts';
export type { Outer, WayOut } from './way-out.ts';
