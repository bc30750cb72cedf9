export { LocalhostDataplane, type LocalhostState } from './dataplane.ts';
export { nodePortOf } from './node-port.ts';
export { LocalhostRules, localhostTrace } from './rules.ts';
