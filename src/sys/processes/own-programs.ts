import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';

/** The inode of the first PID namespace (PROC_PID_INIT_INO): inside it numbers are those that the kernel tells everybody. */
const FIRST_PID_NAMESPACE = 0xefff_fffcn;
/** TASK_COMM_LEN without its end. */
const NAME_LENGTH = 15;
/** What the kernel tells of a program may be read a moment after its end. */
const LINGER_MS = 1000;
const PROGRAMS = 64;

/** A program that this process started. */
interface Started {
  readonly pid: number | undefined;
  readonly name: string;
  /** By the monotonic clock; undefined: it runs. */
  endedAt: number | undefined;
}

const programs: Started[] = [];

/** Remembers a program that was started. @returns to be called when it has ended */
export function noteProgram(program: string, pid: number | undefined): () => void {
  const started: Started = { pid, name: basename(program).slice(0, NAME_LENGTH), endedAt: undefined };
  programs.push(started);
  if (programs.length > PROGRAMS) programs.shift();
  return () => {
    started.endedAt = performance.now();
  };
}

/**
 * Whether a thread is one of this process, or of a program that it started and that runs or has just ended.
 *
 * Inside a PID namespace the kernel's numbers are not ours, and names have to do: whoever has the name of one of our threads,
 * or of a program of ours at the very time, counts as ours.
 *
 * @param thread its number outside all containers
 * @param name as the kernel knows it, at most 15 bytes
 */
export function isOwnProcess(thread: number, name: string): boolean {
  const recent = programs.filter(({ endedAt }) => endedAt === undefined || performance.now() - endedAt < LINGER_MS);
  if (isFirstPidNamespace()) {
    return existsSync(`/proc/self/task/${thread}`) || recent.some(({ pid }) => pid === thread);
  }
  return recent.some((program) => program.name === name) || threadNames().has(name);
}

function isFirstPidNamespace(): boolean {
  try {
    return statSync('/proc/self/ns/pid', { bigint: true }).ino === FIRST_PID_NAMESPACE;
  } catch {
    return false;
  }
}

function threadNames(): ReadonlySet<string> {
  try {
    const tasks = readdirSync('/proc/self/task');
    return new Set(tasks.map((task) => readFileSync(`/proc/self/task/${task}/comm`, 'utf8').trimEnd()));
  } catch {
    // A thread ended meanwhile, or there is no /proc.
    return new Set();
  }
}
