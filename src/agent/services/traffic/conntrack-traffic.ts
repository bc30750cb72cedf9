import { type Clock, type IpFamily, inBackground, type Timer, yielder } from '../../../core/index.ts';
import {
  decodeTranslated,
  listenToTranslated,
  type TranslatedEvents,
  translatedListing,
} from '../../../netlink/conntrack/index.ts';
import { Netlink, openTogether } from '../../../netlink/index.ts';
import { NETLINK_NETFILTER } from '../../../netlink/uapi/index.ts';
import type { PlanDelta } from '../../../proxy/index.ts';
import { readSysctl } from '../../../sys/index.ts';
import { FlowTally } from './flow-tally.ts';
import type { PortReading } from './traffic-book.ts';
import type { TrafficSource } from './traffic-source.ts';

/**
 * Events wait in the kernel for so long: to be woken for each would cost more than to count it. The queue has room for
 * 50,000 a second.
 */
const COLLECT_MS = 250;
/** Read before others of the event loop get their turn: some 10 ms. */
const EVENTS_AT_ONCE = 512;
/** Listing the table takes 2 % of a processor at most: it is not done again before so many times the processor time it took. */
const REST = 50;

/** What modes iptables and nftables have carried, by Service port: counted in the kernel's table of tracked flows. */
export class ConntrackTraffic implements TrafficSource {
  /** Whether the kernel counted packets and bytes when this began. */
  readonly hasCarried: boolean;
  readonly #families: readonly IpFamily[];
  readonly #clock: Clock;
  readonly #tally = new FlowTally();
  readonly #events: TranslatedEvents;
  readonly #netlink: Netlink;
  #timer: Timer | undefined;
  #lost = 0;
  #notBefore = 0;
  #reading: Promise<void> | undefined;
  #isOpen = true;

  /** Listens from now on in the calling thread's namespace. Throws ERR_NETLINK_SOCKET. */
  constructor(families: readonly IpFamily[], clock: Clock) {
    this.#families = families;
    this.#clock = clock;
    this.hasCarried = isAccounting();
    [this.#events, this.#netlink] = openTogether((keep) => [
      keep(listenToTranslated({ ended: this.hasCarried })),
      keep(Netlink.open(NETLINK_NETFILTER)),
    ]);
    this.#collectLater(COLLECT_MS);
    // What is tracked already has begun before.
    inBackground('traffic of Services', () => this.#look());
  }

  get lost(): number {
    return this.#lost;
  }

  note(delta: PlanDelta): void {
    this.#tally.note(delta);
  }

  async read(): Promise<Iterable<PortReading>> {
    if (this.#isOpen) await this.#look();
    return this.#tally.readings();
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    this.#timer?.cancel();
    await this.#reading?.catch(() => {});
    this.#events.close();
    this.#netlink.close();
  }

  /** As fresh as the rest after the last time allows. */
  #look(): Promise<void> {
    this.#collect(Number.POSITIVE_INFINITY);
    if (!this.#reading && this.#clock.now() >= this.#notBefore) {
      this.#reading = this.#list().finally(() => {
        this.#reading = undefined;
      });
    }
    return this.#reading ?? Promise.resolve();
  }

  async #list(): Promise<void> {
    const began = process.cpuUsage();
    const rest = yielder();
    const reading = this.#tally.beginReading();
    try {
      const listed: Uint8Array[][] = [];
      for (const family of this.#families) {
        listed.push(await this.#netlink.dumpAsync(translatedListing(family), async () => rest()));
      }
      this.#collect(Number.POSITIVE_INFINITY);
      reading.seal();
      for (const payload of listed.flat()) {
        const flow = decodeTranslated(payload);
        if (flow) reading.add(flow);
        const wait = rest();
        if (wait) await wait;
      }
    } catch (error) {
      reading.giveUp();
      throw error;
    }
    reading.finish();
    const { user, system } = process.cpuUsage(began);
    this.#notBefore = this.#clock.now() + (REST * (user + system)) / 1000;
  }

  #collectLater(ms: number): void {
    this.#timer = this.#clock.setTimer(() => {
      // Were it to throw, there would be no next time.
      this.#collectLater(this.#collect(EVENTS_AT_ONCE) ? COLLECT_MS : 0);
    }, ms);
  }

  /** Whether nothing is left. */
  #collect(atMost: number): boolean {
    try {
      return this.#events.read((kind, flow) => {
        if (kind === 'begun') this.#tally.begun(flow!);
        else if (kind === 'ended') this.#tally.ended(flow!);
        else this.#lost++;
      }, atMost);
    } catch {
      // Of a form this program does not know: as if it had been lost.
      this.#lost++;
      return true;
    }
  }
}

/** False where connection tracking is not there yet. */
function isAccounting(): boolean {
  try {
    return readSysctl('net/netfilter/nf_conntrack_acct') !== '0';
  } catch {
    return false;
  }
}
