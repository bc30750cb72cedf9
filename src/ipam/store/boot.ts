import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { systemClock } from '../../core/index.ts';

/** A run of the kernel. Pods do not outlive it, files do. */
export interface Boot {
  /** The kernel's random name for it. */
  readonly id: string;
  /** When it began, in milliseconds since 1970 by today's clock. */
  readonly startedMs: number;
}

let ownId: string | undefined;

/** The present run. */
export function currentBoot(): Boot {
  ownId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return {
    id: ownId,
    get startedMs() {
      // Calendar time on purpose: it is compared with the times of files.
      return systemClock.wallTime() - uptime() * 1000;
    },
  };
}
