import { formatIp } from '../../../../core/index.ts';
import type { RecentSource } from '../../../../sys/index.ts';
import type { AffinityClient } from './client.ts';

/** The kernel's clock in its own units. */
export interface KernelTicks {
  readonly now: number;
  /** CONFIG_HZ */
  readonly perSecond: number;
}

/** Of 64 bits: `jiffies` begins 300 s before its lower half overflows (INITIAL_JIFFIES of <linux/jiffies.h>). */
const BEGINNING = 2 ** 32;
const BEFORE_BEGINNING_S = 300;
/** What kernels are built with. */
const KNOWN_HZ = [100, 250, 300, 1000];

/**
 * What the kernel counts now, and how fast, by /proc/timer_list and /proc/uptime.
 *
 * @param timerList its text; empty: it cannot be read
 * @param uptime seconds
 */
export function kernelTicks(timerList: string, uptime: number): KernelTicks | undefined {
  const now = Number(/^jiffies: (\d+)$/m.exec(timerList)?.[1]);
  if (!Number.isFinite(now)) return undefined;
  const errorOf = (hz: number) => Math.abs(BEGINNING + (uptime - BEFORE_BEGINNING_S) * hz - now) / hz;
  const [perSecond] = [...KNOWN_HZ].sort((a, b) => errorOf(a) - errorOf(b));
  // Time in which the machine slept counts in one of them alone.
  return errorOf(perSecond!) < 60 ? { now, perSecond: perSecond! } : undefined;
}

/**
 * The clients of a list of match `recent`. Those whose time is over stay in it until the next look of a rule, and are passed over.
 *
 * @param seconds how long a client is remembered
 * @param ticks undefined: not known, all clients are told
 */
export function recentClients(
  sources: readonly RecentSource[],
  seconds: number,
  ticks: KernelTicks | undefined,
): Omit<AffinityClient, 'endpoint'>[] {
  return sources.flatMap(({ ip, lastSeen }) => {
    const remaining = ticks ? seconds - (ticks.now - lastSeen) / ticks.perSecond : undefined;
    if (remaining !== undefined && remaining <= 0) return [];
    return { client: formatIp(ip), remainingSeconds: remaining === undefined ? null : Math.round(remaining) };
  });
}
