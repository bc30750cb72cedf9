/** What a figure has to reach. */
export interface Target {
  /** Whether the ratio ours/peer is held against it, or our own figure: a count, or bytes, which no machine changes. */
  readonly of: 'ratio' | 'ours';
  readonly atMost?: number;
  readonly atLeast?: number;
  /** Printed beside it: `goal 0.35`. */
  readonly note?: string;
}

/** One figure of a benchmark: ours and a named peer's, taken in the same run. */
export interface Figure {
  readonly what: string;
  readonly unit: string;
  readonly ours: number;
  /** Undefined: there is nothing to compare with, and `peerName` is not read. */
  readonly peer: number | undefined;
  /** Who the peer is: `upstream's layout`, `iptables-restore alone`. */
  readonly peerName: string;
  /** How far the ratio strayed within this run (see `inTurns`). @default 0, for what is counted */
  readonly spread?: number;
  /** @default nothing is promised */
  readonly target?: Target;
  /** For a figure that the README shows: what it means, for somebody who has not read the benchmark. */
  readonly headline?: string;
}

/** What one call of `report` told. */
export interface Report {
  /** `nftables, 10000 x 10` */
  readonly benchmark: string;
  readonly figures: readonly Figure[];
}

/** A whole run of the benchmarks: what bench/results/results.json holds, and all that the pages are made of. */
export interface Results {
  /** `2026-11-22`, UTC. */
  readonly date: string;
  /** `git describe --always --dirty`; empty where there is no git. */
  readonly commit: string;
  /** `2 x AMD EPYC, 8 GiB`. */
  readonly machine: string;
  /** Name and version, in the order they are shown: `Linux`, `Node.js`, `nft`, ... */
  readonly versions: readonly (readonly [name: string, version: string])[];
  /** The load of the machine before the first benchmark, of one minute. */
  readonly load: number;
  readonly minutes: number;
  readonly reports: readonly Report[];
}

/** A target for the ratio ours/peer. */
export function ratioAtMost(atMost: number, note?: string): Target {
  return { of: 'ratio', atMost, ...(note !== undefined && { note }) };
}

/** A target for the ratio ours/peer where more is better: a rate. */
export function ratioAtLeast(atLeast: number, note?: string): Target {
  return { of: 'ratio', atLeast, ...(note !== undefined && { note }) };
}

/** A target for our own figure. */
export function oursAtMost(atMost: number, note?: string): Target {
  return { of: 'ours', atMost, ...(note !== undefined && { note }) };
}

/** For a target that nobody asked for: what is so today, with margin, shall stay so. */
export const HOLDS_THE_LINE = 'holds the line';

/** Whether a figure misses its target by more than it strayed within the run. */
export function isMissed({ ours, peer, spread = 0, target }: Figure): boolean {
  if (!target) return false;
  const [value, noise] = target.of === 'ratio' ? [ours / peer!, spread] : [ours, 0];
  const { atMost = Number.POSITIVE_INFINITY, atLeast = Number.NEGATIVE_INFINITY } = target;
  // Written so that what is not a number misses.
  return !(value - noise <= atMost && value + noise >= atLeast);
}
