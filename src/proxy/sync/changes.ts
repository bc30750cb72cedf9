import type { IpFamily } from '../../core/index.ts';
import { type EndpointSlice, type ObjectEvent, TRIGGER_TIME_ANNOTATION } from '../../kube/index.ts';

/** What made Services dirty. */
export type Change =
  | { readonly kind: 'service' }
  | {
      readonly kind: 'slice';
      /** When the pods behind the slice changed, in milliseconds since the epoch; undefined when it does not say. */
      readonly triggerTime: number | undefined;
      readonly deleted: boolean;
    };

/** What has gathered since the last `take`. */
export interface TakenChanges {
  /** Names of the dirty Services. */
  readonly serviceNames: readonly string[];
  /** When what is now to be written into the kernel happened, in milliseconds since the epoch; several per Service. */
  readonly triggerTimes: readonly number[];
}

/**
 * How many trigger times are kept: of one Service until the next sync, and of all after a sync that failed. Each becomes an
 * observation of the latency; of more than these, those that wait longest say enough.
 */
const MOST_TIMES_OF_A_SERVICE = 16;
const MOST_UNFINISHED_TIMES = 1_000;

/** What an object event means to the proxier of one family; undefined when it does not concern it. */
export function changeOf({ type, object }: ObjectEvent, family: IpFamily): Change | undefined {
  if (object.kind === 'Service') return { kind: 'service' };
  if (object.kind !== 'EndpointSlice' || object.addressType !== family) return undefined;
  return { kind: 'slice', triggerTime: triggerTimeOf(object), deleted: type === 'deleted' };
}

/** The trigger time (RFC 3339) of a slice in milliseconds since the epoch; undefined when missing or unreadable. */
export function triggerTimeOf(slice: EndpointSlice): number | undefined {
  const text = slice.metadata.annotations?.[TRIGGER_TIME_ANNOTATION];
  // Date.parse alone takes nearly anything for a date.
  if (!text || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(text)) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}

/** Gathers dirty Services between two syncs of one family. */
export class PendingChanges {
  readonly #startedAt: number;
  #times = new Map<string, number[]>();
  /** Of which the last `take` handed something over that is not settled yet; undefined: nothing ever was. */
  #taken: ReadonlySet<string> | undefined;
  #unfinished: readonly number[] = [];
  #services = 0;
  #slices = 0;

  /**
   * @param startedAt when this process began, in milliseconds since the epoch: what happened before was not ours to program
   */
  constructor(startedAt: number) {
    this.#startedAt = startedAt;
  }

  /** Changes seen since the last `take`, by kind of object. */
  get counts(): { readonly services: number; readonly slices: number } {
    return { services: this.#services, slices: this.#slices };
  }

  add(serviceNames: Iterable<string>, change: Change): void {
    if (change.kind === 'service') this.#services++;
    else this.#slices++;
    for (const name of serviceNames) {
      const times = this.#times.get(name) ?? [];
      this.#times.set(name, times);
      if (change.kind !== 'slice') continue;
      // A deletion is not timed by the controller; what was remembered of the Service would count its delay wrongly.
      if (change.deleted) times.length = 0;
      else if (change.triggerTime !== undefined && change.triggerTime > this.#startedAt)
        keepTime(times, change.triggerTime);
    }
  }

  /** Whether something of a Service has gathered, or was handed over and is not settled yet. Of all of them until the first is. */
  has(serviceName: string): boolean {
    return !this.#taken || this.#times.has(serviceName) || this.#taken.has(serviceName);
  }

  /** Hands over everything and starts anew. */
  take(): TakenChanges {
    const serviceNames = [...this.#times.keys()];
    if (this.#taken) this.#taken = new Set(serviceNames);
    const taken = {
      serviceNames,
      triggerTimes: [...this.#unfinished, ...[...this.#times.values()].flat()],
    };
    this.#times = new Map();
    this.#unfinished = [];
    this.#services = 0;
    this.#slices = 0;
    return taken;
  }

  /** What was handed over last is in the kernel, or is not going there. */
  settle(): void {
    this.#taken = new Set();
  }

  /** Gives trigger times back after a failed sync: the waiting of those pods goes on. */
  giveBack(triggerTimes: readonly number[]): void {
    this.#unfinished = oldest(triggerTimes);
  }
}

/** Adds a time; when there are too many, the latest of them goes. */
function keepTime(times: number[], time: number): void {
  times.push(time);
  if (times.length <= MOST_TIMES_OF_A_SERVICE) return;
  times.splice(times.indexOf(Math.max(...times)), 1);
}

/** As many as are kept while syncs fail. */
function oldest(times: readonly number[]): readonly number[] {
  if (times.length <= MOST_UNFINISHED_TIMES) return times;
  return [...Float64Array.from(times).sort().subarray(0, MOST_UNFINISHED_TIMES)];
}
