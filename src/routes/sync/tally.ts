import { ipEquals, sameBytes } from '../../core/index.ts';
import { sameRanges } from '../plan/peer.ts';
import type { PeerPlan } from '../plan/planner.ts';
import { sameIdentity } from '../wireguard/identity.ts';
import type { RouteFigures } from './events.ts';

/** How things stand with one peer. */
export interface PeerStanding {
  /** What was written; undefined: nothing. */
  readonly plan: PeerPlan | undefined;
  /** Why not all of its pods are reached; undefined: they are, or it is gone. */
  readonly reason: string | undefined;
  /** Whether that is because the kernel refused something. */
  readonly isRefused: boolean;
}

/** With the calendar time since when it stands so: milliseconds since 1970. */
export interface DatedStanding extends PeerStanding {
  readonly changedAt: number;
}

/** Counts peers and routes as they change, so that no figure takes a walk over all peers. */
export class RouteTally {
  readonly #standings = new Map<string, DatedStanding>();
  readonly #peers = { direct: 0, tunnel: 0, wireguard: 0 };
  readonly #wallTime: () => number;
  readonly #leftOutChanged: (name: string, reason: string | undefined) => void;
  #wanted = 0;
  #inKernel = 0;
  #leftOut = 0;

  /**
   * @param wallTime calendar time in milliseconds, to be shown
   * @param leftOutChanged told whenever a peer is left out, for another reason than before, or no more
   */
  constructor(wallTime: () => number, leftOutChanged: (name: string, reason: string | undefined) => void) {
    this.#wallTime = wallTime;
    this.#leftOutChanged = leftOutChanged;
  }

  /** By name, how it stands with each peer that has pods. */
  standings(): ReadonlyMap<string, DatedStanding> {
    return this.#standings;
  }

  figures(): RouteFigures {
    return { peers: { ...this.#peers }, wanted: this.#wanted, inKernel: this.#inKernel, leftOut: this.#leftOut };
  }

  set(name: string, standing: PeerStanding): void {
    const before = this.#standings.get(name);
    if (before) this.#add(before, -1);
    const { plan, reason, isRefused } = standing;
    if (plan || reason !== undefined) {
      const changedAt = before && isSame(before, standing) ? before.changedAt : this.#wallTime();
      this.#standings.set(name, { plan, reason, isRefused, changedAt });
      this.#add(standing, 1);
    } else this.#standings.delete(name);
    if (before?.reason !== reason) this.#leftOutChanged(name, reason);
  }

  /** Peers that are not known (any more) are gone. */
  forgetOthers(isKnown: (name: string) => boolean): void {
    for (const name of this.#standings.keys()) {
      if (!isKnown(name)) this.set(name, { plan: undefined, reason: undefined, isRefused: false });
    }
  }

  #add({ plan, reason, isRefused }: PeerStanding, sign: 1 | -1): void {
    if (reason !== undefined) this.#leftOut += sign;
    if (!plan) return;
    this.#wanted += sign * plan.ranges.length;
    if (isRefused) return;
    this.#inKernel += sign * plan.ranges.length;
    this.#peers[plan.kind] += sign;
  }
}

function isSame(a: PeerStanding, b: PeerStanding): boolean {
  return a.reason === b.reason && a.isRefused === b.isRefused && (a.plan === b.plan || samePlan(a.plan, b.plan));
}

function samePlan(a: PeerPlan | undefined, b: PeerPlan | undefined): boolean {
  if (!a || !b || !sameRanges(a.ranges, b.ranges)) return false;
  switch (a.kind) {
    case 'direct':
      return b.kind === 'direct' && ipEquals(a.gateway, b.gateway);
    case 'tunnel':
      return b.kind === 'tunnel' && sameBytes(a.mac, b.mac) && ipEquals(a.remote, b.remote);
    case 'wireguard':
      return b.kind === 'wireguard' && sameIdentity(a, b) && ipEquals(a.remote, b.remote);
  }
}
