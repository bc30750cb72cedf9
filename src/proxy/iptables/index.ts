export { type DetectedVariant, detectVariant, type IptablesVariant, isIptablesPresent } from '../rules/index.ts';
export { cleanupIptables } from './cleanup.ts';
export { IptablesDataplane, type IptablesDataplaneOptions } from './dataplane.ts';
