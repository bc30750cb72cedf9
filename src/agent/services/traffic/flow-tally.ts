import { IP_PROTOCOLS, type IpFamily } from '../../../core/index.ts';
import type { FlowTraffic, TranslatedFlow } from '../../../netlink/conntrack/index.ts';
import type { PlanDelta, ServicePortPlan } from '../../../proxy/index.ts';
import type { PortReading } from './traffic-book.ts';

type Sums = { -readonly [Key in keyof FlowTraffic]: number };

/** What is counted of one Service port. */
interface PortTally {
  port: ServicePortPlan;
  /** Its destinations in the index. */
  places: readonly string[];
  /** The port is planned no longer; it is counted on until its last flow has ended. */
  retired: boolean;
  connections: number;
  /** All that was carried, by the last reading. */
  readonly carried: Sums;
  /** Flows that were tracked at the last reading, and what those had carried by then. */
  open: number;
  carriedByOpen: Sums;
  /** What flows have carried that ended since. */
  carriedByEnded: Sums;
}

type Found = Pick<PortTally, 'open' | 'carriedByOpen' | 'carriedByEnded'>;

/** One look at the table of tracked flows, from `beginReading`. */
export interface FlowReading {
  /** The listing is read, and so are the events until then: what ends from now on belongs to the next reading. */
  seal(): void;
  /** A flow of the listing. After `seal`. */
  add(flow: TranslatedFlow): void;
  finish(): void;
  /** Leaves everything as it was before; instead of `finish`. */
  giveUp(): void;
}

/**
 * Counts translated flows by the Service port they were made to: connections as they begin; what they carry out of what ended flows
 * had carried and what those in the table have. Pure. What the first reading finds was before its time and only its growth is counted.
 */
export class FlowTally {
  /** By family and key. */
  readonly #ports = new Map<string, PortTally>();
  /** By destination. */
  readonly #places = new Map<string, PortTally>();
  /** IDs of flows that ended while the table is listed: the listing may tell them or not. */
  #endedMeanwhile: Set<number> | undefined;
  #isFirst = true;

  /** Says what a sync is going to change. */
  note({ upserted, removed }: PlanDelta): void {
    for (const port of removed) {
      const tally = this.#ports.get(portId(port));
      if (tally) tally.retired = true;
    }
    for (const port of upserted) this.#upsert(port);
  }

  begun(flow: TranslatedFlow): void {
    const tally = this.#tallyOf(flow);
    if (tally) tally.connections++;
  }

  ended(flow: TranslatedFlow): void {
    this.#endedMeanwhile?.add(flow.id);
    const tally = this.#tallyOf(flow);
    if (tally) add(tally.carriedByEnded, flow);
  }

  /** To be called before the table is listed. One reading at a time, which is finished or given up. */
  beginReading(): FlowReading {
    const endedMeanwhile = new Set<number>();
    this.#endedMeanwhile = endedMeanwhile;
    const found = new Map<PortTally, Found>();
    return {
      seal: () => {
        this.#endedMeanwhile = undefined;
        for (const tally of this.#ports.values()) {
          found.set(tally, { open: 0, carriedByOpen: nothing(), carriedByEnded: tally.carriedByEnded });
          tally.carriedByEnded = nothing();
        }
      },
      add: (flow) => {
        const tally = endedMeanwhile.has(flow.id) ? undefined : this.#tallyOf(flow);
        const sums = tally && found.get(tally);
        if (!sums) return;
        sums.open++;
        add(sums.carriedByOpen, flow);
      },
      finish: () => {
        for (const [tally, one] of found) this.#settle(tally, one);
        this.#isFirst = false;
      },
      giveUp: () => {
        this.#endedMeanwhile = undefined;
        for (const [tally, { carriedByEnded }] of found) add(tally.carriedByEnded, carriedByEnded);
      },
    };
  }

  /** What is counted by now, of every port. */
  *readings(): Generator<PortReading> {
    for (const { port, connections, carried, open } of this.#ports.values()) {
      yield { port, counts: { connections, ...carried }, open };
    }
  }

  #settle(tally: PortTally, { open, carriedByOpen, carriedByEnded }: Found): void {
    for (const key of this.#isFirst ? [] : SUMS) {
      // Less than before: flows ended that nobody told of, those that were tracked before anybody listened.
      tally.carried[key] += Math.max(0, carriedByEnded[key] + carriedByOpen[key] - tally.carriedByOpen[key]);
    }
    tally.carriedByOpen = carriedByOpen;
    tally.open = open;
    if (!tally.retired || open > 0) return;
    this.#leave(tally);
    this.#ports.delete(portId(tally.port));
  }

  #upsert(port: ServicePortPlan): void {
    const known = this.#ports.get(portId(port));
    const tally = known ?? newTally(port);
    if (known) this.#leave(known);
    else this.#ports.set(portId(port), tally);
    tally.port = port;
    tally.retired = false;
    tally.places = placesOf(port);
    for (const place of tally.places) this.#places.set(place, tally);
  }

  #leave(tally: PortTally): void {
    for (const place of tally.places) if (this.#places.get(place) === tally) this.#places.delete(place);
  }

  #tallyOf({ family, protocol, destination, port }: TranslatedFlow): PortTally | undefined {
    const everywhere = placeKey(family, protocol, port);
    return this.#places.get(everywhere + String.fromCharCode(...destination)) ?? this.#places.get(everywhere);
  }
}

const SUMS = ['packetsIn', 'packetsOut', 'bytesIn', 'bytesOut'] as const satisfies readonly (keyof FlowTraffic)[];
const nothing = (): Sums => ({ packetsIn: 0, packetsOut: 0, bytesIn: 0, bytesOut: 0 });

function add(sums: Sums, more: FlowTraffic): void {
  for (const key of SUMS) sums[key] += more[key];
}

function newTally(port: ServicePortPlan): PortTally {
  const sums = { carried: nothing(), carriedByOpen: nothing(), carriedByEnded: nothing() };
  return { port, places: [], retired: false, connections: 0, open: 0, ...sums };
}

const portId = ({ clusterIp, key }: ServicePortPlan) => `${clusterIp.family} ${key}`;

/** The addresses of a port, and its NodePort at whichever address. */
function placesOf({ clusterIp, externalIps, loadBalancerVips, protocol, port, nodePort }: ServicePortPlan): string[] {
  const { family } = clusterIp;
  const number = IP_PROTOCOLS[protocol];
  const addresses = [clusterIp, ...externalIps, ...loadBalancerVips];
  return [
    ...addresses.map(({ bytes }) => placeKey(family, number, port) + String.fromCharCode(...bytes)),
    ...(nodePort === 0 ? [] : [placeKey(family, number, nodePort)]),
  ];
}

/** Short, as one is made for each flow; the bytes of an address come behind it. */
const placeKey = (family: IpFamily, protocol: number, port: number) =>
  String.fromCharCode(family === 'IPv4' ? 4 : 6, protocol, port);
