import { readFileSync } from 'node:fs';

/** What connection tracking has counted since a namespace was made, by the kernel's own names: `invalid`, `insert_failed`, `clashres`. */
export type TrackingCounters = Readonly<Record<string, number>>;

/**
 * Of the calling thread's namespace, all processors together, by /proc/net/stat/nf_conntrack: a line of names, then one of
 * hexadecimal numbers for each processor. Empty where the kernel does not tell them (no CONFIG_NF_CONNTRACK_PROCFS).
 */
export function readTrackingCounters(): TrackingCounters {
  let text: string;
  try {
    text = readFileSync('/proc/thread-self/net/stat/nf_conntrack', 'utf8');
  } catch {
    return {};
  }
  const [names = [], ...processors] = text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const sums = names.map((name, column): [string, number] => [
    name,
    processors.reduce((sum, values) => sum + Number.parseInt(values[column] ?? '0', 16), 0),
  ]);
  return Object.fromEntries(sums);
}
