export { IptablesDataplane } from './dataplane.ts';
export { COUNTERS, JUMPS } from './fixed-chains.ts';
export { iptablesMode } from './mode/iptables-mode.ts';
export { ENTRY_CHAINS, endpointChainName, HAIRPIN_CHAIN } from './names.ts';
