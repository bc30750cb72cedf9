let passed = 0;

/**
 * Kills this process, as a crash would, if the variable NODEPLANE_CNI_FAILPOINT of its own environment names this step, or
 * `STEP:N` for the N-th time that this thread comes by. Without the variable it does nothing; the environment of a request
 * that comes over a socket has no say in it.
 */
export function failpoint(step: string): void {
  const wanted = process.env.NODEPLANE_CNI_FAILPOINT;
  if (wanted === undefined) return;
  const [name, times = '1'] = wanted.split(':');
  if (name === step && ++passed >= Number(times)) process.kill(process.pid, 'SIGKILL');
}
