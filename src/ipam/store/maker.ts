import { readFileSync, readlinkSync } from 'node:fs';
import { systemClock } from '../../core/index.ts';
import type { Boot } from './boot.ts';

/** Who made an attachment, where and when: enough to tell whether it is being made at this moment, or cannot be there any more. */
export interface Maker {
  /** The kernel's run. */
  readonly bootId: string;
  /** The process, by number and start time. */
  readonly process: string;
  /** The namespace in which it has that number; undefined in notes of earlier versions. */
  readonly pidns: string | undefined;
  /** The network namespace that has the attachment's link; undefined in notes of earlier versions. */
  readonly netns: string | undefined;
  /** When it began, in milliseconds since 1970; 0 in notes of earlier versions. */
  readonly begunMs: number;
}

/**
 * Of a process in another PID namespace nothing can be seen. An ADD waits a minute at most for an IPAM plugin, and no
 * runtime waits this long for an ADD.
 */
const LONGEST_ADD_MS = 5 * 60_000;

let own: Pick<Maker, 'process' | 'pidns'> | undefined;

/** This process now, in the network namespace of the calling thread. */
export function thisMaker(boot: Boot): Maker {
  own ??= { process: `${process.pid}:${startTime(process.pid)}`, pidns: readlinkSync('/proc/self/ns/pid') };
  const netns = readlinkSync('/proc/thread-self/ns/net');
  // Calendar time on purpose: processes have no other clock in common that a file could tell.
  return { ...own, bootId: boot.id, netns, begunMs: systemClock.wallTime() };
}

/** Whether a maker is still at work; of one that cannot be seen, whether it may be. */
export function isAtWork({ bootId, process, pidns, begunMs }: Maker, here: Maker): boolean {
  if (bootId !== here.bootId) return false;
  if (pidns === undefined || pidns === here.pidns) return isRunning(process);
  return here.begunMs - begunMs < LONGEST_ADD_MS;
}

/** The keys a note has for its maker. */
export function makerKeys({ process: maker, ...rest }: Maker): object {
  return { maker, ...rest };
}

/** The maker a note names; undefined when it names none. */
export function parseMaker(keys: Readonly<Record<string, unknown>>): Maker | undefined {
  const { bootId, maker, pidns, netns, begunMs } = keys;
  if (typeof bootId !== 'string' || typeof maker !== 'string') return undefined;
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
  const began = typeof begunMs === 'number' ? begunMs : 0;
  return { bootId, process: maker, pidns: text(pidns), netns: text(netns), begunMs: began };
}

/** Whether a process, by number and start time, still runs. */
export function isRunning(text: string): boolean {
  const [pid, started] = text.split(':');
  return started !== '' && startTime(Number(pid)) === started;
}

/** The kernel's start time of a process, which tells it from a later one with its number; '' when it is gone. */
function startTime(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // proc(5): the second field, in parentheses, may contain anything; the start time is the 22nd.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}
