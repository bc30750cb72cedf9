export { type AttachmentKey, attachmentKey } from './attachment-key.ts';
export { wantedBy } from './attachment-note.ts';
export { collectVanished, linkFinder } from './collect-vanished.ts';
export { dataDirectoryOf } from './config.ts';
export { keepConversations } from './conversations.ts';
export type { ContainerId, Environment, InterfaceName, NetworkName } from './environment.ts';
export { CNI_ERROR, type CniErrorCode } from './errors.ts';
export {
  loadReassertion,
  loadRemoval,
  type PodFeatures,
  type Reassertion,
  type WantedAttachment,
  withSubnets,
} from './features/index.ts';
export { main, type PluginProcess } from './main.ts';
export { NODE_LOCK } from './node-lock.ts';
export { type CniReply, type CniRequest, runCni } from './run-cni.ts';
export { NEWEST_VERSION, SUPPORTED_VERSIONS } from './versions.ts';
