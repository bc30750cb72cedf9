export { checkFamilies, type FamilyProblems, type NodeFamilies } from './check/check-families.ts';
export {
  type ConfigMessage,
  type LoadedFile,
  type Outcome,
  readCommandLine,
  type Surroundings,
} from './command-line.ts';
export { ConfigWatch, type ConfigWatchOptions, type WatchedFiles } from './file/config-watch.ts';
export type { CniSettings, DetectLocal, KubeProxyConfig, RoutesConfig } from './file/kube-proxy-config.ts';
export type { Configuration } from './file/schema.ts';
export { systemFiles } from './file/watched-files.ts';
export { writeConfigz } from './file/write-config.ts';
export { KUBERNETES_VERSION, type Program } from './program.ts';
export {
  appendPort,
  type BindAddress,
  formatBindAddress,
  isUnspecified,
  parseBindAddress,
} from './values/bind-address.ts';
export { formatDuration, parseDuration } from './values/duration.ts';
export { type FeatureGate, type FeatureGates, isEnabled } from './values/feature-gates.ts';
export type { GateStage } from './values/known-gates.ts';
