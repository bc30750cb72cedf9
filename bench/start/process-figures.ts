import { readFileSync } from 'node:fs';

/** Of the kernel's clock in /proc/PID/stat (USER_HZ), which is 100 on every architecture that Node.js runs on. */
const MS_PER_TICK = 10;

/** Milliseconds of processor time, user and system (proc_pid_stat(5)). */
export interface ProcessorTimes {
  readonly own: number;
  /** Of the programs it has waited for. */
  readonly programs: number;
}

export function processorTimes(pid: number): ProcessorTimes {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name of the program, in parentheses, may hold anything; utime, stime, cutime and cstime are the 14th to the 17th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [utime, stime, cutime, cstime] = fields.slice(11, 15).map((ticks) => Number(ticks) * MS_PER_TICK);
  return { own: utime! + stime!, programs: cutime! + cstime! };
}

/** Of a process and the programs it has waited for. */
export function processorMs(pid: number): number {
  const { own, programs } = processorTimes(pid);
  return own + programs;
}
