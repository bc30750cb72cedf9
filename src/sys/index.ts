export { type Exec, type ExecOptions, type ExecResult, exec } from './exec.ts';
export { type FileLockOptions, withFileLock } from './file-lock.ts';
export { type Libc, libc } from './libc.ts';
export { enterNetns, inNetns, isOwnNetns, type NetnsHandle, netnsIdentity, openNetns } from './netns.ts';
export { readSysctl, writeSysctl } from './sysctl.ts';
