export { returnFreedMemory } from './allocator.ts';
export { DescriptorLedger } from './descriptor-ledger.ts';
export { type Exec, type ExecOptions, type ExecResult, exec } from './exec.ts';
export { failpoint } from './failpoint.ts';
export { type FileLockOptions, withFileLock } from './file-lock.ts';
export { legacyForwardRefuses } from './legacy-iptables.ts';
export { type Libc, libc, noteDescriptorsIn, type ReceivedMessage } from './libc.ts';
export { describeLockHolder, type LockHolder, lockHolder } from './lock-holder.ts';
export { enterNetns, inNetns, isOwnNetns, type NetnsHandle, netnsIdentity, openNetns } from './netns.ts';
export { checkOwnDirectory, makeOwnDirectory } from './own-directory.ts';
export { sleepSync } from './sleep.ts';
export { readSysctl, writeSysctl } from './sysctl.ts';
export {
  descriptorOf,
  hasPeerLeft,
  type PeerCredentials,
  peerCredentials,
  receiveWithDescriptors,
  waitForMessage,
} from './unix-socket.ts';
export { watchReadable } from './watch-readable.ts';
