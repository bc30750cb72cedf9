export { LocalhostDataplane, type LocalhostDataplaneOptions, type LocalhostState } from './dataplane.ts';
export { LocalhostRules, localhostTrace, type NodePortKeys, type StandInAddress } from './rules.ts';
export { localhostLayout, localhostTable, nodePortKey, nodePortSet } from './table.ts';
