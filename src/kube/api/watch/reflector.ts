import { type Clock, errorText, NodeplaneError, sleep, type Timer, tellFailure, yielder } from '../../../core/index.ts';
import type { ObjectEvent, SourceProblem } from '../../source.ts';
import { type ApiClient, ApiStatusError, isStatus } from '../client/api-client.ts';
import { backOffMs } from '../client/back-off.ts';
import type { ApiObservation, ApiObserver } from '../client/observation.ts';
import { statusErrorOf } from '../client/status-error.ts';
import { GarbageError } from './garbage-error.ts';
import { listPages } from './list-pages.ts';
import { ResourceCache } from './resource-cache.ts';
import type { WatchTarget } from './target.ts';
import { type WatchEvent, watchEvents } from './watch-stream.ts';

/** A watch is asked for 5 to 10 minutes, at random, so that those of many nodes do not end together. */
const WATCH_SECONDS = 300;
/** How much longer than asked for a watch may be silent, and as much again be open if it is not. The server ends it in time unless something is stuck. */
const SLACK_MS = 30_000;
/** A watch that stays open for this long works. */
const SETTLED_MS = 1_000;

/** How often to ask whether a server has come to know a resource that it may do without. */
const OPTIONAL_RETRY_MS = 300_000;

/** What a reflector tells. */
export interface ReflectorSink {
  event(event: ObjectEvent): void;
  /** Once: everything that existed has been told, or the server does not know an optional resource. */
  complete(): void;
  /** `problems()` may have changed. */
  problemsChanged(): void;
}

/** A server that starts, or something in front of it, may say once or twice that it does not know a resource. So many failures take some 12 s. */
const SURELY_MISSING = 4;

export interface ReflectorOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  /** A number from 0 to 1 (exclusive). */
  readonly random: () => number;
  readonly observe: ApiObserver;
  /** The resource, then what to use instead while the server does not know it (404). */
  readonly targets: readonly [WatchTarget, ...WatchTarget[]];
}

/**
 * Follows one resource of the API: lists it, watches it from there, and goes on after whatever happens. What is known
 * stays known meanwhile, and every later list is compared with it.
 */
export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #sink: ReflectorSink;
  #alternative = 0;
  #cache: ResourceCache;
  /** Where to go on watching; undefined: everything has to be listed. */
  #version: string | undefined;
  /** How far the server was when it was last followed. */
  #followed: string | undefined;
  #complete = false;
  /** How lists are read: in the watch; not there this time, since that failed; never there, since the server cannot. */
  #streaming: 'wanted' | 'skipped' | 'unsupported' = 'wanted';
  /** Failures in a row. */
  #failures = 0;
  #trouble: SourceProblem | undefined;
  #toldProblems = 0;
  #lastActivity: number | undefined;

  constructor(options: ReflectorOptions, sink: ReflectorSink) {
    this.#options = options;
    this.#sink = sink;
    this.#cache = new ResourceCache(this.target);
  }

  /** What is listed and watched at present. */
  get target(): WatchTarget {
    return this.#options.targets[this.#alternative]!;
  }

  /** When, by the clock's `now`, the server last said something about the resource. */
  get lastActivity(): number | undefined {
    return this.#lastActivity;
  }

  /** Whether the server has answered, or the first attempt to reach it has failed. */
  get tried(): boolean {
    return this.#complete || this.#failures > 0;
  }

  /** What cannot be used, and what keeps the resource from being read. */
  problems(): readonly SourceProblem[] {
    return this.#trouble ? [this.#trouble, ...this.#cache.problems()] : this.#cache.problems();
  }

  /** Runs until the signal aborts, whatever the server sends and the sink throws. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#version === undefined && this.#streaming !== 'wanted') await this.#list(signal);
        await this.#watch(signal);
      } catch (error) {
        if (signal.aborted) return;
        await sleep(this.#options.clock, this.#failed(this.#asFailure(error)), signal);
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const started = this.#options.clock.now();
    const startList = () => this.#cache.startList();
    startList();
    let version: string | undefined;
    const rest = yielder();
    for await (const page of listPages(this.#options.client, this.target, signal, startList)) {
      for (const item of page.items) {
        this.#tell(this.#cache.put(item));
        const wait = rest();
        if (wait) await wait;
      }
      version = page.version;
      this.#heard();
    }
    this.#streaming = this.#streaming === 'skipped' ? 'wanted' : this.#streaming;
    this.#listed(version, started, { streamed: false });
  }

  /** Watches from the known version, or reads a streaming list and goes on watching. Returns when the server ends it. */
  async #watch(signal: AbortSignal): Promise<void> {
    const { client, clock, random } = this.#options;
    const timeoutSeconds = Math.floor(WATCH_SECONDS * (1 + random()));
    const query = {
      ...this.target.query,
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(timeoutSeconds),
    };
    const from: Record<string, string> =
      this.#version === undefined
        ? { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
        : { resourceVersion: this.#version };
    const started = clock.now();
    if (this.#version === undefined) this.#cache.startList();

    const quietLimitMs = timeoutSeconds * 1000 + SLACK_MS;
    const response = await client.send({
      method: 'GET',
      path: this.target.path,
      query: { ...query, ...from },
      readsProtobuf: this.target.message !== undefined,
      limitMs: quietLimitMs + SLACK_MS,
      signal,
    });
    // The initial events come without a pause; the limit of a list holds for them.
    if (this.#version !== undefined) response.setQuietLimit(quietLimitMs);
    this.#heard();
    this.#observe({ kind: 'watchStarted' });
    const settle = () => clock.setTimer(() => this.#works(), SETTLED_MS);
    let settling: Timer | undefined = this.#version === undefined ? undefined : settle();
    try {
      for await (const event of watchEvents(response, this.target.message)) {
        this.#heard();
        if (this.#version !== undefined) {
          this.#liveEvent(event);
        } else if (this.#initialEvent(event)) {
          this.#listed(this.#version, started, { streamed: true });
          settling = settle();
          response.setQuietLimit(quietLimitMs);
        }
      }
    } finally {
      settling?.cancel();
      this.#observe({ kind: 'watchEnded', seconds: (clock.now() - started) / 1000 });
    }
    if (this.#version === undefined) throw this.#error('ended before all objects were sent');
    if (clock.now() - started < SETTLED_MS) throw this.#error('was ended by the server at once');
  }

  /** True for the one that ends the list; the version is known then. */
  #initialEvent(event: WatchEvent): boolean {
    switch (event.type) {
      case 'ERROR':
        throw this.#statusError(event.status);
      case 'BOOKMARK':
        if (!event.endsInitialEvents) return false;
        this.#version = event.version;
        if (event.version === undefined) throw this.#error('sent a bookmark without a version');
        return true;
      default:
        this.#apply(event);
        return false;
    }
  }

  #liveEvent(event: WatchEvent): void {
    if (event.type === 'ERROR') throw this.#statusError(event.status);
    this.#follow(event.version);
    if (event.type !== 'BOOKMARK') {
      this.#apply(event);
      // One that breaks behind its first event is no better for that: only one that lasts ends the row of failures.
      this.#clearTrouble();
    }
    this.#version = event.version ?? this.#version;
  }

  /**
   * Takes note of how far the server is. Where that is less far than it was, its store was put back to an earlier state, and what has
   * changed since is counted by the same numbers as what was known: nothing of it holds any more.
   *
   * @throws ApiStatusError 410 then
   */
  #follow(version: string | undefined): void {
    if (version === undefined) return;
    const before = this.#followed;
    this.#followed = version;
    if (!isOlder(version, before)) return;
    this.#cache.forgetVersions();
    throw new ApiStatusError(this.#attempt(), 410, `its version ${version} is older than ${before}`);
  }

  #apply({ type, object }: Extract<WatchEvent, { object: unknown }>): void {
    this.#tell(type === 'DELETED' ? this.#cache.remove(object) : this.#cache.put(object));
  }

  #tell(events: readonly ObjectEvent[]): void {
    for (const event of events) this.#sink.event(event);
    if (this.#cache.problemRevision === this.#toldProblems) return;
    this.#toldProblems = this.#cache.problemRevision;
    this.#sink.problemsChanged();
  }

  #listed(version: string | undefined, started: number, { streamed }: { readonly streamed: boolean }): void {
    this.#follow(version);
    this.#tell(this.#cache.finishList());
    this.#version = version;
    const seconds = (this.#options.clock.now() - started) / 1000;
    this.#observe({ kind: 'listed', objects: this.#cache.size, seconds, streamed });
    this.#clearTrouble();
    this.#completed();
  }

  #completed(): void {
    if (this.#complete) return;
    this.#complete = true;
    this.#sink.complete();
  }

  #heard(): void {
    this.#lastActivity = this.#options.clock.now();
  }

  /** The watch delivers, or would. */
  #works(): void {
    this.#failures = 0;
    this.#clearTrouble();
    this.#observe({ kind: 'watchStands' });
  }

  #clearTrouble(): void {
    if (!this.#trouble) return;
    this.#trouble = undefined;
    this.#sink.problemsChanged();
  }

  /** What is no failure of the conversation may have left an event half taken in: everything is listed again. */
  #asFailure(error: unknown): NodeplaneError {
    if (error instanceof NodeplaneError) return error;
    tellFailure('API reader', error);
    this.#version = undefined;
    return this.#error(`could not be taken in: ${errorText(error)}`);
  }

  /** Decides how to go on, and returns after how long. */
  #failed(error: NodeplaneError): number {
    const wasStreaming = this.#version === undefined && this.#streaming === 'wanted';
    if (wasStreaming && isStatus(error, 400, 422)) {
      // A server without streaming lists; it will not learn it while it runs.
      this.#streaming = 'unsupported';
      return 0;
    }
    if (wasStreaming) this.#streaming = 'skipped';
    if (needsList(error)) this.#version = undefined;
    if (this.target.optional && isStatus(error, 404)) {
      this.#completed();
      this.#observe({ kind: 'failed', error, retryInMs: OPTIONAL_RETRY_MS, relist: true });
      return OPTIONAL_RETRY_MS;
    }
    const isMissing = !this.#complete && isStatus(error, 404) && this.#failures >= SURELY_MISSING;
    const nextAlternative = isMissing && this.#tryNextAlternative();

    const first = this.#failures === 0;
    const askedMs = error instanceof ApiStatusError ? error.retryAfterMs : undefined;
    // One 410 is nothing but an old version; a storm of them is to be slowed down.
    const atOnce = nextAlternative || (first && isStatus(error, 410));
    const retryInMs = atOnce ? 0 : backOffMs(this.#failures, this.#options.random, askedMs);
    this.#failures++;
    // A broken connection is made again without a word; only what lasts is worth telling.
    if (!nextAlternative && (!first || !this.#complete)) this.#setTrouble(error);
    this.#observe({ kind: 'failed', error, retryInMs, relist: this.#version === undefined });
    return retryInMs;
  }

  /** False after the last one, when the first is tried again. */
  #tryNextAlternative(): boolean {
    const { targets } = this.#options;
    if (targets.length === 1) return false;
    this.#tell(this.#cache.clear());
    this.#alternative = (this.#alternative + 1) % targets.length;
    this.#cache = new ResourceCache(this.target);
    this.#streaming = 'wanted';
    return this.#alternative !== 0;
  }

  #setTrouble(error: NodeplaneError): void {
    const message = `Cannot be read, the last known state stays in force: ${error.message}`;
    if (this.#trouble?.message === message) return;
    this.#trouble = { where: this.target.name, message, unread: true };
    this.#sink.problemsChanged();
  }

  #attempt(): string {
    return `Watching ${this.target.name}`;
  }

  #error(what: string): NodeplaneError {
    return new NodeplaneError('ERR_API', `${this.#attempt()}: the watch ${what}`);
  }

  #statusError(status: unknown): ApiStatusError {
    return statusErrorOf(this.#attempt(), status);
  }

  #observe(observation: ReflectorObservation): void {
    this.#options.observe({ ...observation, resource: this.target.name });
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
type ReflectorObservation = DistributiveOmit<Extract<ApiObservation, { readonly resource: string }>, 'resource'>;

/** A watch can be taken up again after a lost connection or an overloaded server, not after anything else. */
function needsList(error: NodeplaneError): boolean {
  if (error instanceof GarbageError) return true;
  return error instanceof ApiStatusError && !isStatus(error, 401, 403, 429) && error.status < 500;
}

/** Versions are decimal numbers that grow, of one resource at least (KEP-5504). Other servers' are not compared. */
function isOlder(version: string, than: string | undefined): boolean {
  if (than === undefined || !/^\d+$/.test(version) || !/^\d+$/.test(than)) return false;
  return BigInt(version) < BigInt(than);
}
