/**
 * Kills this process, as a crash would, if the variable NODEPLANE_CNI_FAILPOINT of its own environment names this step.
 * Without the variable it does nothing; the environment of a request that comes over a socket has no say in it.
 */
export function failpoint(step: string): void {
  if (process.env.NODEPLANE_CNI_FAILPOINT === step) process.kill(process.pid, 'SIGKILL');
}
