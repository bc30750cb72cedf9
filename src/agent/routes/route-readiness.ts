import { errorText, type IpFamily } from '../../core/index.ts';
import type { RouteEvent } from '../../routes/index.ts';

/** How the routes of one family stand: undefined where the kernel holds what it should. */
interface Standing {
  readonly kind: 'good' | 'waiting' | 'bad';
  readonly reason: string;
}

/**
 * Whether the routes to other nodes are in the kernel. A family that has nothing to do, because the cluster's nodes have no
 * pods of it, waits for ever: it counts only while no family has routes. Nodes that are left out for what they say
 * about themselves do not count: no restart of this node's agent mends them.
 */
export class RouteReadiness {
  readonly #families = new Map<IpFamily, Standing>();

  /** A RouteObserver. */
  readonly observe = (event: RouteEvent): void => {
    const { kind, family } = event;
    if (kind === 'waiting') this.#families.set(family, { kind, reason: `${family}: ${event.reason}` });
    if (kind === 'syncFailed')
      this.#families.set(family, { kind: 'bad', reason: `${family}: ${errorText(event.error)}` });
    if (kind !== 'synced') return;
    const missing = event.figures.wanted - event.figures.inKernel;
    const reason = `${family}: ${missing} of ${event.figures.wanted} routes are not in the kernel`;
    this.#families.set(family, { kind: missing > 0 ? 'bad' : 'good', reason });
  };

  /** Why not; undefined: they are. */
  reason(): string | undefined {
    const standings = [...this.#families.values()];
    const bad = standings.find(({ kind }) => kind === 'bad');
    if (bad) return bad.reason;
    if (standings.some(({ kind }) => kind === 'good')) return undefined;
    return standings[0]?.reason ?? 'the routes are not written yet';
  }
}
