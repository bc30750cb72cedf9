import { type Clock, errorText, type IpFamily } from '../../../core/index.ts';
import { type ObjectEvent, objectName, type SourceProblem } from '../../../kube/index.ts';
import { type LeftOutPort, type ProxyEvent, serviceOfSlice } from '../../../proxy/index.ts';
import { STATUS_LIMITS } from '../status.ts';

/** A sync that wrote something or failed. All times here are the clock's `now`. */
export interface RecordedSync {
  readonly at: number;
  readonly seconds: number;
  readonly full: boolean;
  readonly failed: boolean;
}

/** What is known of the proxy of one family. */
export interface FamilyRecord {
  readonly family: IpFamily;
  /** The oldest first. */
  readonly syncs: readonly RecordedSync[];
  /** The last one that wrote something: Service ports, and objects in the kernel then. */
  readonly written: { readonly at: number; readonly seconds: number; readonly ports: number } | undefined;
  /** Since when syncs fail, and the last reason; undefined: they do not. */
  readonly failing: { readonly since: number; readonly reason: string } | undefined;
  /** When the kernel was last seen to hold what was committed: read back, or written in full. */
  readonly verifiedAt: number | undefined;
  /** Why it could not be read back the last time. */
  readonly unverified: string | undefined;
  /** Differences found and not repaired yet: of very many the first. */
  readonly drift: readonly string[];
  /** The number of all of them. */
  readonly driftTotal: number;
  /** By key of the Service port, what the kernel refuses. */
  readonly leftOut: ReadonlyMap<string, LeftOutPort>;
  /** By Service name, what cannot be used of it. */
  readonly problems: ReadonlyMap<string, readonly string[]>;
}

/** Something that happened, `count` times in a row, the last time then. */
export interface RecordedChange {
  readonly at: number;
  readonly what: string;
  readonly count: number;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Remembers what the proxies and the objects did lately, as far as a page can tell it. An event costs a few writes in memory, and
 * what is remembered has bounds.
 */
export class StatusRecorder {
  readonly #clock: Clock;
  readonly #families = new Map<IpFamily, Writable<FamilyRecord>>();
  /** The newest last. */
  readonly #changes: Writable<RecordedChange>[] = [];
  /** By Service name, those that changed longest ago first. */
  readonly #lastChanges = new Map<string, number>();
  #changeCount = 0;
  #objectProblems: readonly SourceProblem[] = [];
  #begun = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get families(): readonly FamilyRecord[] {
    return [...this.#families.values()];
  }

  /** The newest last. */
  get changes(): readonly RecordedChange[] {
    return this.#changes;
  }

  /** How often objects changed since those that existed at the start were read. */
  get changeCount(): number {
    return this.#changeCount;
  }

  get objectProblems(): readonly SourceProblem[] {
    return this.#objectProblems;
  }

  /** When a Service or its slices last changed. */
  lastChangeOf(serviceName: string): number | undefined {
    return this.#lastChanges.get(serviceName);
  }

  setObjectProblems(problems: readonly SourceProblem[]): void {
    this.#objectProblems = problems;
  }

  /** All objects that existed at the start were told: what comes now is a change. */
  begin(): void {
    this.#begun = true;
  }

  objectChanged({ type, object }: ObjectEvent): void {
    if (!this.#begun) return;
    const service = object.kind === 'Service' ? objectName(object) : undefined;
    const served = object.kind === 'EndpointSlice' ? serviceOfSlice(object) : undefined;
    const name = service ?? served;
    if (name === undefined) return;
    this.#changeCount++;
    if (service !== undefined && type === 'deleted') this.#lastChanges.delete(name);
    else this.#remember(name);
    const suffix = type === 'updated' ? '' : ` ${type}`;
    this.#note(service === undefined ? `endpoints of ${name}` : `Service ${name}${suffix}`);
  }

  /** A ProxyObserver. */
  readonly observe = (event: ProxyEvent): void => {
    const record = this.#record(event.family);
    const at = this.#clock.now();
    switch (event.kind) {
      case 'syncFinished': {
        const { full, seconds, deltaSize, commit } = event;
        record.failing = undefined;
        if (commit) {
          record.written = { at, seconds, ports: deltaSize };
          this.#addSync(record, { at, seconds, full, failed: false });
        }
        if (full) {
          record.verifiedAt = at;
          record.drift = [];
          record.driftTotal = 0;
        }
        break;
      }
      case 'syncFailed': {
        const { full, seconds, error, stage } = event;
        const reason = `${stage === 'plan' ? 'planning' : 'writing'} failed: ${errorText(error)}`;
        record.failing = { since: record.failing?.since ?? at, reason };
        this.#addSync(record, { at, seconds, full, failed: true });
        this.#note(`${event.family} sync failed`);
        break;
      }
      case 'verified':
        record.verifiedAt = at;
        record.unverified = undefined;
        break;
      case 'verifyFailed':
        record.unverified = errorText(event.error);
        break;
      case 'driftFound':
        record.drift = event.drifts
          .slice(0, STATUS_LIMITS.drifts)
          .map(({ object, difference }) => `${event.family}: ${object} is ${difference}`);
        record.driftTotal = event.drifts.length;
        this.#note(`${event.family} rules changed by somebody else: ${event.drifts.length} differences`);
        break;
      case 'leftOut':
        record.leftOut = new Map(event.ports.map((port) => [port.key, port]));
        break;
      case 'serviceProblem':
        this.#setProblems(record, event.serviceName, event.problems);
        break;
      default:
    }
  };

  #setProblems(record: FamilyRecord, service: string, problems: readonly string[]): void {
    const known = record.problems as Map<string, readonly string[]>;
    if (problems.length === 0) known.delete(service);
    else known.set(service, problems.slice(0, STATUS_LIMITS.textsOfService));
  }

  #addSync(record: FamilyRecord, sync: RecordedSync): void {
    const syncs = record.syncs as RecordedSync[];
    syncs.push(sync);
    if (syncs.length > STATUS_LIMITS.syncs) syncs.shift();
  }

  #remember(service: string): void {
    // Set anew, it is the last one.
    this.#lastChanges.delete(service);
    this.#lastChanges.set(service, this.#clock.now());
    if (this.#lastChanges.size <= STATUS_LIMITS.lastChanges) return;
    const [oldest] = this.#lastChanges.keys();
    this.#lastChanges.delete(oldest!);
  }

  #note(what: string): void {
    const at = this.#clock.now();
    const last = this.#changes.at(-1);
    if (last?.what === what) {
      last.at = at;
      last.count++;
      return;
    }
    this.#changes.push({ at, what, count: 1 });
    if (this.#changes.length > STATUS_LIMITS.changes) this.#changes.shift();
  }

  #record(family: IpFamily): Writable<FamilyRecord> {
    let record = this.#families.get(family);
    if (!record) {
      record = {
        family,
        syncs: [],
        written: undefined,
        failing: undefined,
        verifiedAt: undefined,
        unverified: undefined,
        drift: [],
        driftTotal: 0,
        leftOut: new Map(),
        problems: new Map(),
      };
      this.#families.set(family, record);
    }
    return record;
  }
}
