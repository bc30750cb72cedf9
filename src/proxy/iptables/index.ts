export { IptablesDataplane } from './dataplane.ts';
export { COUNTERS } from './fixed-chains.ts';
export { iptablesMode } from './mode/iptables-mode.ts';
