export { LocalhostDataplane, type LocalhostState } from './dataplane.ts';
export { nodePortOf } from './node-port.ts';
export { kernelRules, LocalhostRules, localhostTrace } from './rules.ts';
