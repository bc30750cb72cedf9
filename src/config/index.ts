export { checkFamilies, type NodeFamilies } from './check/check-families.ts';
export { type LoadedFile, readCommandLine, type Surroundings } from './command-line.ts';
export { ConfigWatch } from './file/config-watch.ts';
export type {
  CniSettings,
  KubeProxyConfig,
  MacvlanSettings,
  MasqueradeConfig,
  PoolsConfig,
  RoutesConfig,
} from './file/kube-proxy-config.ts';
export { systemFiles } from './file/watched-files.ts';
export { writeConfigz } from './file/write-config.ts';
export { KUBERNETES_VERSION, type Program } from './program.ts';
export { addressFromHere, type BindAddress, formatBindAddress, parseBindAddress } from './values/bind-address.ts';
export { isEnabled } from './values/feature-gates.ts';
