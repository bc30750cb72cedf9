import { formatIpPort } from '../../../core/index.ts';
import type { ListedDestination, VirtualServerKey } from '../../../netlink/ipvs/index.ts';
import type { Operation } from './operations.ts';

/** A virtual server some of whose destinations get nothing new and wait for their connections to end. */
export interface DrainingServer {
  readonly key: VirtualServerKey;
  /** Nobody wants it any more: it goes with the last of them. */
  readonly retired: boolean;
  /** By `ip:port`: since when, by `Clock.now()`. */
  readonly since: ReadonlyMap<string, number>;
}

/**
 * The destinations that are being drained. An endpoint that goes gets weight 0, which the kernel remembers over a restart of
 * the agent: what is found with weight 0 and is not wanted goes on draining, with a new grace period.
 */
export class Draining {
  readonly #servers = new Map<string, { key: VirtualServerKey; retired: boolean; since: Map<string, number> }>();

  /** By `serverKey`. */
  get servers(): ReadonlyMap<string, DrainingServer> {
    return this.#servers;
  }

  get size(): number {
    return this.#servers.size;
  }

  /** Begins with one destination, or goes on with it. */
  begin(server: string, key: VirtualServerKey, endpoint: string, now: number): void {
    let draining = this.#servers.get(server);
    if (!draining) {
      draining = { key, retired: false, since: new Map() };
      this.#servers.set(server, draining);
    }
    if (!draining.since.has(endpoint)) draining.since.set(endpoint, now);
  }

  /** The destination is gone, or wanted again. */
  end(server: string, endpoint: string): void {
    const draining = this.#servers.get(server);
    draining?.since.delete(endpoint);
    if (draining?.since.size === 0 && !draining.retired) this.#servers.delete(server);
  }

  /** Says whether anybody wants the virtual server. */
  setRetired(server: string, retired: boolean): void {
    const draining = this.#servers.get(server);
    if (!draining) return;
    draining.retired = retired;
    if (!retired && draining.since.size === 0) this.#servers.delete(server);
  }

  /** The virtual server is gone. */
  forget(server: string): void {
    this.#servers.delete(server);
  }
}

/** What to remove now of one draining virtual server, given what the kernel says of its destinations. */
export interface DrainStep {
  readonly remove: readonly (Operation & { readonly kind: 'deleteDestination' })[];
  /** Removed by somebody else. */
  readonly gone: readonly string[];
}

/**
 * Decides about the destinations of one draining virtual server: those without connections go, and those whose grace period
 * is over.
 */
export function drainStep(
  server: DrainingServer,
  listed: readonly ListedDestination[],
  now: number,
  gracePeriodMs: number,
): DrainStep {
  const byEndpoint = new Map(listed.map((each) => [formatIpPort(each.address, each.port), each]));
  const remove: (Operation & { readonly kind: 'deleteDestination' })[] = [];
  const gone: string[] = [];
  for (const [endpoint, since] of server.since) {
    const destination = byEndpoint.get(endpoint);
    if (!destination) {
      gone.push(endpoint);
      continue;
    }
    // Remembered clients of persistence do not count: the kernel sends them elsewhere (expire_quiescent_template).
    const open = destination.activeConnections + destination.inactiveConnections;
    if (open > 0 && now - since < gracePeriodMs) continue;
    remove.push({ kind: 'deleteDestination', key: server.key, endpoint, destination, owners: [] });
  }
  return { remove, gone };
}
