export { dataDirectoryOf } from './config/config.ts';
export { asksForFirewall } from './config/feature-config.ts';
export { configurationsInFront } from './config/in-front.ts';
export { POD_ANNOTATIONS } from './config/macvlan-config.ts';
export {
  type DesiredRules,
  joinRules,
  loadLimits,
  loadReassertion,
  loadRemoval,
  type WantedAttachment,
} from './features/index.ts';
export { leaveObstaclesToAgent } from './features/obstacles/left-to-agent.ts';
export { isOpened } from './features/obstacles/obstacles.ts';
export { type PodPackets, packetsOf } from './features/obstacles/packets.ts';
export { type Refusal, refusalsOf } from './features/obstacles/refusals.ts';
/** What tells how the interfaces of pods are, loaded when it is asked for. */
export const loadLinkDrift = () => import('./drift/index.ts');
export { linkFinder } from './link/host-link.ts';
export { keepSocketsOpen } from './link/sockets.ts';
export { isForwarding } from './link/sysctls.ts';
export { main } from './main.ts';
export { attachmentKey, isPodLink } from './protocol/attachment-key.ts';
export {
  type ContainerId,
  type Environment,
  type InterfaceName,
  isNetworkName,
  type NetworkName,
} from './protocol/environment.ts';
export { CNI_ERROR } from './protocol/errors.ts';
export { readStandardInput } from './protocol/standard-input.ts';
export { NEWEST_VERSION, SUPPORTED_VERSIONS } from './protocol/versions.ts';
export { type CniReply, type CniRequest, runCni } from './run-cni.ts';
export { wantedBy } from './verbs/attachment-note.ts';
export { reclaim } from './verbs/reclaim.ts';
