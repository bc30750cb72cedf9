import type { IpFamily } from '../../../core/index.ts';
import type { PortTraffic, ServicePortPlan } from '../../../proxy/index.ts';

/** What is counted of a Service port by now. */
export interface PortReading {
  readonly port: ServicePortPlan;
  /** They only grow; less than before means begun anew. */
  readonly counts: PortTraffic;
  /** Connections that are open at this moment; undefined: not known. */
  readonly open?: number;
}

/** A series of each metric. */
export interface TrafficLine {
  readonly family: IpFamily;
  /** Undefined: all ports without a line of their own. */
  readonly port: ServicePortPlan | undefined;
  readonly counts: PortTraffic;
  readonly open: number | undefined;
}

interface Entry {
  port: ServicePortPlan;
  last: PortTraffic;
  /** Between the last two readings. */
  more: PortTraffic;
  open: number | undefined;
  /** How busy it was lately. */
  score: number;
  /** Since it has a line of its own; undefined: it has none. */
  shown: PortTraffic | undefined;
}

/** Before anything was carried. */
export const NO_TRAFFIC: PortTraffic = { connections: 0, packetsIn: 0, packetsOut: 0, bytesIn: 0, bytesOut: 0 };
/** What a reading leaves of the score before it: half after seven. */
const FADING = 0.9;
/** How much busier a port has to be to take the line of another, so that lines do not come and go. */
const CLEARLY = 2;

/**
 * Gives the busiest Service ports a line each, and the others one together for each family. No line ever falls, and nothing counts in
 * two: a port that takes the line of another begins it at 0, and has counted among the others until then. Pure.
 */
export class TrafficBook {
  readonly #lines: number;
  #entries = new Map<string, Entry>();
  readonly #others = new Map<IpFamily, PortTraffic>();

  /** @param lines how many ports have one of their own at most, both families together */
  constructor(lines: number) {
    this.#lines = lines;
  }

  /** How many ports have no line of their own. */
  get hidden(): number {
    let count = 0;
    for (const { shown } of this.#entries.values()) if (!shown) count++;
    return count;
  }

  /** @param readings of every port there is: the others are forgotten */
  take(readings: Iterable<PortReading>): void {
    const before = this.#entries;
    this.#entries = new Map();
    for (const { port, counts, open } of readings) {
      const id = `${port.clusterIp.family} ${port.key}`;
      const known = before.get(id);
      const more = difference(counts, known?.last ?? NO_TRAFFIC);
      const score = (known?.score ?? 0) * FADING + more.connections + (open ?? 0);
      this.#entries.set(id, { port, last: counts, more, open, score, shown: known?.shown });
    }
    const { waiting, having } = this.#byScore();
    for (const entry of waiting.splice(0, this.#lines - having.length)) entry.shown = NO_TRAFFIC;
    for (const { port, more, shown } of this.#entries.values()) {
      const { family } = port.clusterIp;
      const others = this.#others.get(family) ?? NO_TRAFFIC;
      this.#others.set(family, shown ? others : sum(others, more));
    }
    for (const entry of this.#entries.values()) entry.shown &&= sum(entry.shown, entry.more);
    for (const entry of waiting) {
      const weakest = having.pop();
      if (!weakest || entry.score <= CLEARLY * weakest.score) return;
      weakest.shown = undefined;
      entry.shown = NO_TRAFFIC;
    }
  }

  *lines(): Generator<TrafficLine> {
    const open = new Map<IpFamily, number>();
    for (const { port, open: its, shown } of this.#entries.values()) {
      const { family } = port.clusterIp;
      if (shown) yield { family, port, counts: shown, open: its };
      else if (its !== undefined) open.set(family, (open.get(family) ?? 0) + its);
    }
    for (const [family, counts] of this.#others) yield { family, port: undefined, counts, open: open.get(family) };
  }

  /** The busiest first, those with a line and those without. */
  #byScore(): { readonly waiting: Entry[]; readonly having: Entry[] } {
    const [waiting, having]: [Entry[], Entry[]] = [[], []];
    for (const entry of this.#entries.values()) (entry.shown ? having : waiting).push(entry);
    for (const list of [waiting, having]) list.sort((a, b) => b.score - a.score);
    return { waiting, having };
  }
}

function sum(a: PortTraffic, b: PortTraffic): PortTraffic {
  return {
    connections: a.connections + b.connections,
    packetsIn: a.packetsIn + b.packetsIn,
    packetsOut: a.packetsOut + b.packetsOut,
    bytesIn: a.bytesIn + b.bytesIn,
    bytesOut: a.bytesOut + b.bytesOut,
  };
}

function difference(now: PortTraffic, before: PortTraffic): PortTraffic {
  const more = (key: keyof PortTraffic) => (now[key] < before[key] ? now[key] : now[key] - before[key]);
  return {
    connections: more('connections'),
    packetsIn: more('packetsIn'),
    packetsOut: more('packetsOut'),
    bytesIn: more('bytesIn'),
    bytesOut: more('bytesOut'),
  };
}
