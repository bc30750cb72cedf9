import { setImmediate } from 'node:timers/promises';
import { type Clock, IP_PROTOCOLS, type IpAddress, type IpFamily, inSlices } from '../../../core/index.ts';
import type { Protocol } from '../../../kube/index.ts';
import type { Flow, FlowListing } from '../../../netlink/conntrack/index.ts';
import {
  addTouched,
  type PlanDelta,
  type StaleFlows,
  staleFlows,
  type TouchedPorts,
  touchedBy,
  whereaboutsOf,
} from '../../../proxy/index.ts';
import type { FlowTable } from './flow-table.ts';

/**
 * Up to this many destinations the kernel is asked for the flows of each, which takes 30 ms where 100,000 flows are
 * tracked; all flows of a protocol are read for more, which takes 300 ms there.
 */
const MAX_SEPARATE_LISTINGS = 4;
/** Decoding and judging takes about 3 us each. */
const FLOWS_IN_A_ROW = 4096;
/** Deleting takes about 6 us each. */
const DELETIONS_IN_A_ROW = 256;

/** What a cleaning did. */
export interface FlowCleaning {
  readonly family: IpFamily;
  readonly deleted: number;
  readonly seconds: number;
  /** Why it could not be finished. What it was about is looked at again by the next one. */
  readonly error?: unknown;
}

/** Makes what tells the addresses that answer on NodePorts. */
export type NodePortAddresses = () => (ip: IpAddress) => boolean;

export interface FlowCleanerOptions {
  readonly family: IpFamily;
  /** Whose flows end. @default UDP and SCTP */
  readonly protocols?: readonly Protocol[] | undefined;
  /** End only those that nobody has answered. @default false */
  readonly unanswered?: boolean;
  readonly table: FlowTable;
  readonly clock: Clock;
}

/**
 * Deletes the tracked flows that a change of Services has made stale, in one family. What syncs change is noted as it is
 * planned and cleaned after the commit: flows of a sync that failed are cleaned after the one that succeeds.
 */
export class FlowCleaner {
  readonly #options: FlowCleanerOptions;
  #touched: TouchedPorts = new Map();

  constructor(options: FlowCleanerOptions) {
    this.#options = options;
  }

  /** Says what a sync is going to change. */
  note(delta: PlanDelta): void {
    addTouched(this.#touched, delta, this.#options.protocols);
  }

  /** Whether there is a port among what was noted that there was not before. */
  hasNewPorts(): boolean {
    for (const { earlier } of this.#touched.values()) if (earlier.length === 0) return true;
    return false;
  }

  /**
   * Deletes what is stale now that the new rules are in the kernel. Calls must not overlap. The event loop gets its turn
   * between listings and between groups of flows.
   *
   * @param nodePortAddresses called when there is something to look for
   * @param judge asked for each stale flow: `waits` has the next cleaning find it again. @default all end
   * @returns what was done, also when it failed half-way; undefined when no port of its protocols was touched, which
   *   costs nothing
   */
  async clean(
    nodePortAddresses: NodePortAddresses,
    judge: (flow: Flow) => 'ends' | 'waits' | 'stays' = () => 'ends',
  ): Promise<FlowCleaning | undefined> {
    const touched = this.#touched;
    if (touched.size === 0) return undefined;
    this.#touched = new Map();
    const { family, table, clock, unanswered = false } = this.#options;
    const began = clock.now();
    let deleted = 0;
    const result = () => ({ family, deleted, seconds: (clock.now() - began) / 1000 });
    try {
      const stale = await (unanswered
        ? this.#findUnanswered(touched, nodePortAddresses)
        : this.#find(touched, nodePortAddresses));
      const verdicts = stale.map(judge);
      const waiting = stale.filter((_, i) => verdicts[i] === 'waits');
      if (waiting.length > 0) this.#giveBack(touchedBy(touched, waiting));
      const flows = stale.filter((_, i) => verdicts[i] === 'ends');
      for (; deleted < flows.length; deleted = Math.min(deleted + DELETIONS_IN_A_ROW, flows.length)) {
        table.delete(flows.slice(deleted, deleted + DELETIONS_IN_A_ROW));
        await setImmediate();
      }
      return result();
    } catch (error) {
      this.#giveBack(touched);
      return { ...result(), error };
    }
  }

  async #find(touched: TouchedPorts, nodePortAddresses: NodePortAddresses): Promise<Flow[]> {
    const stale = await inSlices(staleFlows(touched, nodePortAddresses()));
    return this.#list(listingsFor(this.#options.family, stale), stale.isStale);
  }

  /** There are few of them, whatever is tracked, so the Services are looked through only for those. */
  async #findUnanswered(touched: TouchedPorts, nodePortAddresses: NodePortAddresses): Promise<Flow[]> {
    const { family, protocols = [] } = this.#options;
    const { ports, mayBeTo } = await inSlices(whereaboutsOf(touched));
    const filter = (_: number, port: number) => ports.has(port);
    const listings = protocols.map((name) => ({ family, protocol: IP_PROTOCOLS[name], unanswered: true, filter }));
    const flows = await this.#list(listings, mayBeTo);
    const asked = touchedBy(touched, flows);
    return asked.size === 0 ? [] : flows.filter((await inSlices(staleFlows(asked, nodePortAddresses()))).isStale);
  }

  async #list(listings: readonly FlowListing[], isWanted: (flow: Flow) => boolean): Promise<Flow[]> {
    const flows: Flow[] = [];
    for (const listing of listings) {
      // The kernel may take 10 ms for it.
      await setImmediate();
      let seen = 0;
      for (const flow of this.#options.table.list(listing)) {
        if (isWanted(flow)) flows.push(flow);
        if (++seen % FLOWS_IN_A_ROW === 0) await setImmediate();
      }
    }
    return flows;
  }

  /** What was noted meanwhile is newer. */
  #giveBack(touched: TouchedPorts): void {
    for (const [key, newer] of this.#touched) {
      const first = touched.get(key)?.earlier.slice(0, 1) ?? [];
      touched.set(key, { current: newer.current, earlier: [...first, ...newer.earlier.slice(-1)] });
    }
    this.#touched = touched;
  }
}

/** How to ask for all flows to these destinations. */
function listingsFor(family: IpFamily, { destinations }: StaleFlows): FlowListing[] {
  if (destinations.length <= MAX_SEPARATE_LISTINGS) return destinations.map((destination) => ({ family, destination }));
  const ports = new Map<number, Set<number>>();
  for (const { protocol, port } of destinations) {
    const known = ports.get(protocol);
    if (known) known.add(port);
    else ports.set(protocol, new Set([port]));
  }
  return [...ports].map(([protocol, wanted]) => ({ family, protocol, filter: (_, port) => wanted.has(port) }));
}
