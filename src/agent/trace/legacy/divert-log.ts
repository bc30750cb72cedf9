import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type IpFamily, NODE_PATHS } from '../../../core/index.ts';
import { makeOwnDirectory, readSysctl, writeSysctl } from '../../../sys/index.ts';
import { agentFile } from '../../standby/agent-file.ts';

/** Who gets what is logged of a family, -j TRACE and -j LOG alike; by NFPROTO_*. */
const LOGGERS: Readonly<Record<IpFamily, string>> = {
  IPv4: 'net/netfilter/nf_log/2',
  IPv6: 'net/netfilter/nf_log/10',
};
const PROGRAMS = 'nfnetlink_log';

/** Where it stands what a trace has changed, for as long as it is changed. */
const noteOfTrace = () => agentFile(NODE_PATHS.runDir, 'trace');

/**
 * Has the kernel tell programs what it logs of a family in this network namespace, until the function returned is called. Only one
 * trace at a time may do this. If this process is killed before, `restoreLog` finds how it was.
 *
 * @throws KernelError where sysctls are read-only; ERR_UNSAFE_PATH, errors of node:fs
 */
export function divertLog(family: IpFamily): () => void {
  restoreLog();
  const name = LOGGERS[family];
  const before = readSysctl(name);
  if (before === PROGRAMS) return () => {};
  makeOwnDirectory(NODE_PATHS.runDir, 'the note of a live trace');
  writeFileSync(noteOfTrace(), `${name} ${before}\n`, { mode: 0o600 });
  try {
    writeSysctl(name, PROGRAMS);
  } catch (error) {
    rmSync(noteOfTrace(), { force: true });
    throw error;
  }
  return restoreLog;
}

/** Gives the log back to who had it before the last trace, if that was killed. No trace may run. Throws KernelError. */
export function restoreLog(): void {
  let text: string;
  try {
    text = readFileSync(noteOfTrace(), 'utf8');
  } catch {
    return;
  }
  const [name = '', before = ''] = text.trim().split(' ');
  // What others have set since is theirs.
  if (Object.values(LOGGERS).includes(name) && readSysctl(name) === PROGRAMS) writeSysctl(name, before);
  rmSync(noteOfTrace(), { force: true });
}
