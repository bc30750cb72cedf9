export { returnFreedMemory, trimAfterStart } from './allocator.ts';
export { DescriptorLedger } from './descriptor-ledger.ts';
export { type Exec, type ExecOptions, type ExecResult, exec } from './exec.ts';
export { failpoint } from './failpoint.ts';
export { FileLock, holderOf, lockReleases, shareLockReleases, withFileLock } from './file-lock.ts';
export { ebtablesWithRules } from './legacy-iptables/ebtables.ts';
export { type RecentSource, readRecentList } from './legacy-iptables/recent-list.ts';
export {
  type BuiltInChain,
  isChainHead,
  type LegacyEntry,
  type LegacyFamily,
  LegacyTable,
  legacyEntryCount,
  legacyTableInUse,
  legacyTables,
  readLegacyTable,
} from './legacy-iptables/table.ts';
export { libc, noteDescriptorsIn } from './libc.ts';
export { type LinkFacts, linkFacts } from './netns/link-facts.ts';
export { enterNetns, inNetns, isOwnNetns, type NetnsHandle, netnsIdentity, openNetns } from './netns/netns.ts';
export { otherNetns } from './netns/other-netns.ts';
export { checkOwnDirectory, makeOwnDirectory } from './own-directory.ts';
export { type Capability, needCapability, ownCapabilities } from './processes/capabilities.ts';
export { execNow } from './processes/exec-now.ts';
export { lockHolder } from './processes/lock-holder.ts';
export { isOwnProcess } from './processes/own-programs.ts';
export { sleepSync } from './sleep.ts';
export { syncFolder } from './sync-folder.ts';
export {
  hasSysctls,
  type LocalPorts,
  listSysctls,
  procSysRoot,
  readLocalPorts,
  readSysctl,
  useProcSysRoot,
  writeSysctl,
} from './sysctl.ts';
export { descriptorOf, hasPeerLeft, peerCredentials, receiveWithDescriptors, waitForMessage } from './unix-socket.ts';
export { agentFlags } from './v8-flags.ts';
export { watchReadable } from './watch-readable.ts';
