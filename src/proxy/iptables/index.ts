export { type DetectedVariant, detectVariant, type IptablesVariant, whyIptablesMissing } from '../rules/index.ts';
export { IptablesDataplane, type IptablesDataplaneOptions, type OtherVariant } from './dataplane.ts';
export { COUNTERS } from './fixed-chains.ts';
export { type IptablesModeSettings, iptablesMode } from './mode/iptables-mode.ts';
export {
  disableRouteLocalnet,
  enableRouteLocalnet,
  guardLoopback,
  lacksLoopbackGuard,
} from './route-localnet.ts';
