export { appendPort, type BindAddress, formatBindAddress, isUnspecified, parseBindAddress } from './bind-address.ts';
export { checkFamilies, type FamilyProblems, type NodeFamilies } from './check-families.ts';
export {
  type ConfigMessage,
  type LoadedFile,
  type Outcome,
  readCommandLine,
  type Surroundings,
} from './command-line.ts';
export { ConfigWatch, type ConfigWatchOptions, type WatchedFiles } from './config-watch.ts';
export { formatDuration, parseDuration } from './duration.ts';
export { type FeatureGate, type FeatureGates, isEnabled } from './feature-gates.ts';
export type { GateStage } from './known-gates.ts';
export type { CniSettings, DetectLocal, KubeProxyConfig } from './kube-proxy-config.ts';
export { KUBERNETES_VERSION, type Program } from './program.ts';
export type { Configuration } from './schema.ts';
export { systemFiles } from './watched-files.ts';
export { writeConfigz } from './write-config.ts';
