export { dataDirectoryOf } from './config/config.ts';
export { POD_ANNOTATIONS } from './config/macvlan-config.ts';
export {
  type DesiredRules,
  joinRules,
  loadReassertion,
  loadRemoval,
  type Reassertion,
  type WantedAttachment,
} from './features/index.ts';
export { keepConversations } from './link/conversations.ts';
export { main, type PluginProcess } from './main.ts';
export { type AttachmentKey, attachmentKey } from './protocol/attachment-key.ts';
export type { ContainerId, Environment, InterfaceName, NetworkName } from './protocol/environment.ts';
export { CNI_ERROR, type CniErrorCode } from './protocol/errors.ts';
export { NEWEST_VERSION, SUPPORTED_VERSIONS } from './protocol/versions.ts';
export { type CniReply, type CniRequest, runCni } from './run-cni.ts';
export { wantedBy } from './verbs/attachment-note.ts';
export { linkFinder, reclaim } from './verbs/reclaim.ts';
