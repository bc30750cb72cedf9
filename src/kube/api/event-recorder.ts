import { createHash, randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { type Clock, errorText, sleep, systemClock, tellFailure } from '../../core/index.ts';
import { type ApiClient, ApiStatusError } from './client/api-client.ts';
import { backOffMs } from './client/back-off.ts';
import type { ApiObserver } from './client/observation.ts';

/** Equal events within this time are one (the API's own span for a series of events). */
const REPEAT_MS = 6 * 60_000;
/** So many events may come at once, then one each REFILL_MS. */
const BURST = 25;
const REFILL_MS = 10_000;
/** With `backOffMs` one to two minutes (client-go: two): an API server that restarts, alone or behind a balancer, is back by then. */
const ATTEMPTS = 14;
/** The API's limits: of a note in bytes, of a name and of who reports in characters (the names of Nodes and Services are ASCII). */
const LONGEST_NOTE = 1024;
const LONGEST_NAME = 253;
const LONGEST_INSTANCE = 128;

/** What an event is about. */
export interface EventSubject {
  readonly kind: 'Node' | 'Service';
  readonly name: string;
  /** Empty for a Node. */
  readonly namespace: string;
}

/** What an Event (events.k8s.io/v1) says. */
export interface RecordedEvent {
  readonly type: 'Normal' | 'Warning';
  /** CamelCase, for programs: `Starting`. */
  readonly reason: string;
  /** CamelCase, what was being done: `StartKubeProxy`. */
  readonly action: string;
  /** For people. */
  readonly note: string;
  /**
   * Who tells the same: `node` is this node, also after a restart, `cluster` each node. It is then kept by the API server once,
   * for as long as it keeps Events (an hour). @default nobody: each is told
   */
  readonly once?: 'node' | 'cluster' | undefined;
  /** Where nodes word the same in different ways: what is the same. @default the note */
  readonly cause?: string | undefined;
}

export interface EventRecorderOptions {
  readonly client: ApiClient;
  /** The component that reports, `kube-proxy`. */
  readonly controller: string;
  /** Which one of them: the node's name. */
  readonly nodeName: string;
  /** @default the system's clock */
  readonly clock?: Clock;
  /** A number from 0 to 1 (exclusive). @default Math.random */
  readonly random?: () => number;
  /** Told about events that were not recorded. @default nobody */
  readonly observe?: ApiObserver;
}

/**
 * Writes Kubernetes Events (events.k8s.io/v1), to be seen by `kubectl describe`. Recording is a courtesy: it never
 * fails and never waits; what comes too often, or cannot be written after some attempts, is dropped.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #stopping = new AbortController();
  /** When, by the clock's `now`, an event was last accepted; the oldest first. */
  readonly #accepted = new Map<string, number>();
  readonly #writing = new Set<Promise<void>>();
  #tokens = BURST;
  #refilledAt: number;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    // Each that is being written listens for the end; there are no more than the burst lets out.
    setMaxListeners(0, this.#stopping.signal);
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#refilledAt = this.#clock.now();
  }

  record(subject: EventSubject, event: RecordedEvent): void {
    const now = this.#clock.now();
    const key = JSON.stringify([subject, event]);
    for (const [old, at] of this.#accepted) {
      if (now - at < REPEAT_MS) break;
      this.#accepted.delete(old);
    }
    if (this.#accepted.has(key)) {
      this.#drop(event, 'the same was recorded a short while ago');
    } else if (!this.#takeToken(now)) {
      this.#drop(event, 'too many events');
    } else {
      this.#accepted.set(key, now);
      const written = this.#write(subject, event)
        .catch((error) => tellFailure('Event', error))
        .finally(() => this.#writing.delete(written));
      this.#writing.add(written);
    }
  }

  /** For a program that is about to end: waits until all is written or dropped, but not longer than `graceMs`. */
  async drain(graceMs: number): Promise<void> {
    const late = new AbortController();
    await Promise.race([Promise.all(this.#writing), sleep(this.#clock, graceMs, late.signal)]);
    late.abort();
  }

  /** Gives up what is not written yet. */
  stop(): void {
    this.#stopping.abort();
  }

  async #write(subject: EventSubject, event: RecordedEvent): Promise<void> {
    const { signal } = this.#stopping;
    // Events about cluster-scoped objects are kept in the namespace "default".
    const namespace = subject.namespace || 'default';
    const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
    const body = this.#body(subject, event, namespace);
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        const response = await this.#options.client.send({ method: 'POST', path, body, signal });
        // The connection can be used again only once the answer was read.
        for await (const _ of response.body);
        return;
      } catch (error) {
        if (signal.aborted || (event.once && isTold(error))) return;
        if (failures + 1 >= ATTEMPTS || isFinal(error)) {
          this.#drop(event, errorText(error));
          return;
        }
        const askedMs = error instanceof ApiStatusError ? error.retryAfterMs : undefined;
        await sleep(this.#clock, backOffMs(failures, this.#random, askedMs), signal);
      }
    }
  }

  #body(subject: EventSubject, event: RecordedEvent, namespace: string): object {
    const { controller, nodeName } = this.#options;
    const { kind, name } = subject;
    const { type, reason, action, note } = event;
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: eventName(name, this.#suffix(subject, event)), namespace },
      // A time with microseconds.
      eventTime: new Date(this.#clock.wallTime()).toISOString().replace('Z', '000Z'),
      type,
      reason,
      action,
      note: cutText(note, LONGEST_NOTE),
      regarding: { apiVersion: 'v1', kind, name, ...(subject.namespace && { namespace: subject.namespace }) },
      reportingController: controller,
      reportingInstance: `${controller}-${nodeName}`.slice(0, LONGEST_INSTANCE),
    };
  }

  /** Of the same event the same: the API server refuses all but the first. */
  #suffix(subject: EventSubject, { type, reason, note, once, cause = note }: RecordedEvent): string {
    if (!once) return randomBytes(8).toString('hex');
    const same = [subject, type, reason, cause, once === 'node' && this.#options.nodeName];
    return createHash('sha256').update(JSON.stringify(same)).digest('hex').slice(0, 16);
  }

  #takeToken(now: number): boolean {
    const refills = Math.floor((now - this.#refilledAt) / REFILL_MS);
    this.#refilledAt += refills * REFILL_MS;
    this.#tokens = Math.min(BURST, this.#tokens + refills);
    if (this.#tokens === 0) return false;
    this.#tokens--;
    return true;
  }

  #drop({ reason }: RecordedEvent, cause: string): void {
    this.#options.observe?.({ kind: 'eventDropped', reason, cause });
  }
}

/** The API server has one of this name (AlreadyExists). */
function isTold(error: unknown): boolean {
  return error instanceof ApiStatusError && error.status === 409;
}

/** A refusal that will be the same next time. */
function isFinal(error: unknown): boolean {
  return error instanceof ApiStatusError && error.status < 500 && error.status !== 429;
}

/** A name must end in a letter or digit before each dot. */
function eventName(name: string, suffix: string): string {
  const beginning = name.slice(0, LONGEST_NAME - suffix.length - 1).replace(/[-.]+$/, '');
  return `${beginning}.${suffix}`;
}

function cutText(text: string, longest: number): string {
  if (Buffer.byteLength(text) <= longest) return text;
  const ellipsis = '…';
  const room = longest - Buffer.byteLength(ellipsis);
  const bytes = new Uint8Array(room);
  // Only whole characters are written.
  const { read } = new TextEncoder().encodeInto(text, bytes);
  return text.slice(0, read) + ellipsis;
}
