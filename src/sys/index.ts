export { returnFreedMemory } from './allocator.ts';
export { type Exec, type ExecOptions, type ExecResult, exec } from './exec.ts';
export { failpoint } from './failpoint.ts';
export { type FileLockOptions, withFileLock } from './file-lock.ts';
export { type Libc, libc, type ReceivedMessage } from './libc.ts';
export { describeLockHolder, type LockHolder, lockHolder } from './lock-holder.ts';
export { enterNetns, inNetns, isOwnNetns, type NetnsHandle, netnsIdentity, openNetns } from './netns.ts';
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
