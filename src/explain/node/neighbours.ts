import { formatIp, type IpAddress, ipEquals, systemClock } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { askForNeighbour, listNeighbours, type Neighbour, type NeighbourFamily } from '../../netlink/route/index.ts';
import { NUD_FAILED, NUD_INCOMPLETE } from '../../netlink/uapi/index.ts';
import { sleepSync } from '../../sys/index.ts';

/** Whoever is on a link answers within this time who has its address. */
const PATIENCE_MS = 100;
const POLL_MS = 2;

/** Whom this node takes for its neighbours. */
export class Neighbours {
  readonly #route: Netlink;
  readonly #known = new Map<string, readonly Neighbour[]>();
  /** Who was asked for once more. */
  readonly #asked = new Set<string>();

  constructor(route: Netlink) {
    this.#route = route;
  }

  /** As they were when they were first asked for. */
  on(family: NeighbourFamily, index: number): readonly Neighbour[] {
    const key = `${family} ${index}`;
    const known = this.#known.get(key) ?? listNeighbours(this.#route, { family, index });
    this.#known.set(key, known);
    return known;
  }

  /** Whom this node takes for the neighbour with an address on a link; undefined: it knows of none. */
  find(address: IpAddress, index: number): Neighbour | undefined {
    return entryOf(address, this.on(address.family, index));
  }

  /** Whether this node answers for an address of others on a link, by an entry for it (`ip neigh add proxy`). */
  isProxied(address: IpAddress, index: number): boolean {
    const { family } = address;
    return entryOf(address, listNeighbours(this.#route, { family, index, proxy: true })) !== undefined;
  }

  /** They are read anew. */
  forget(): void {
    this.#known.clear();
  }

  /**
   * Has the kernel ask once more for those that did not answer last, as the next packet to them would, and waits for
   * the answers of all. What their entries say is of then, and no packet is judged by it (__neigh_event_send,
   * net/core/neighbour.c). It makes no entries, and changes none that holds.
   *
   * @returns whether somebody was asked for
   */
  askAnew(entries: readonly Neighbour[]): boolean {
    const failed = entries.filter((entry) => (entry.state & NUD_FAILED) !== 0 && !this.#asked.has(keyOf(entry)));
    // One that is gone meanwhile is not known, as any that nobody asked for.
    const refusals = this.#route.attempt(failed.map(askForNeighbour));
    const asked = failed.filter((_, index) => refusals[index] === undefined);
    if (asked.length === 0) return false;
    for (const entry of asked) this.#asked.add(keyOf(entry));
    const end = systemClock.now() + PATIENCE_MS;
    do {
      sleepSync(POLL_MS);
      this.forget();
    } while (systemClock.now() < end && asked.some(({ ip, index }) => isUnanswered(this.find(ip!, index))));
    return true;
  }

  /** Whether somebody was asked for just now, and did not answer. */
  isSilent(entry: Neighbour | undefined): boolean {
    return isUnanswered(entry) && this.#asked.has(keyOf(entry!));
  }
}

/** Whether somebody was asked for, and has not answered so far. */
export function isUnanswered(entry: Neighbour | undefined): boolean {
  return ((entry?.state ?? 0) & (NUD_FAILED | NUD_INCOMPLETE)) !== 0;
}

/** In words, who has not answered. @param link its name */
export function unansweredText({ state, ip, changedSecondsAgo }: Neighbour, link: string): string {
  const ago = `${Math.floor(changedSecondsAgo ?? 0)} s ago`;
  if ((state & NUD_FAILED) !== 0) return `nobody answered for ${formatIp(ip!)} on ${link} when asked ${ago}`;
  return `${formatIp(ip!)} has not answered on ${link} so far, asked for ${ago}`;
}

/** The entry for an address. */
export function entryOf(address: IpAddress, neighbours: readonly Neighbour[]): Neighbour | undefined {
  return neighbours.find(({ ip }) => ip !== undefined && ipEquals(ip, address));
}

function keyOf({ index, ip }: Neighbour): string {
  return `${index} ${formatIp(ip!)}`;
}
