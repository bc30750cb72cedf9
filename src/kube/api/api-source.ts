import { isDeepStrictEqual } from 'node:util';
import { type Clock, systemClock, type Timer, tellFailure } from '../../core/index.ts';
import { objectKey } from '../objects/types.ts';
import type { Resource } from '../resource.ts';
import type { ObjectEvent, ObjectHandler, ObjectSource, SourceProblem } from '../source.ts';
import type { ApiClient } from './client/api-client.ts';
import type { ApiObserver } from './client/observation.ts';
import { Reflector } from './watch/reflector.ts';
import { targetsOf } from './watch/target.ts';

/** How long `synced` waits for what is not essential, as kube-proxy waits for its Node to exist and to have an address. */
const WAIT_MS = 30_000;
/** Problems that come together are told together. */
const PROBLEMS_DELAY_MS = 50;

export interface ApiSourceOptions {
  /** Stays the caller's: `stop` does not close it. */
  readonly client: ApiClient;
  /** What to read; no two of the same name. Problems are told in this order. */
  readonly resources: readonly Resource[];
  /** @default the system's clock */
  readonly clock?: Clock;
  /** A number from 0 to 1 (exclusive). @default Math.random */
  readonly random?: () => number;
  /** Told about lists, watches and failures (requests are observed by the client). @default nobody */
  readonly observe?: ApiObserver;
}

/** A resource, who reads it, and how far that is. */
interface Reading {
  readonly resource: Resource;
  readonly reflector: Reflector;
  /** All objects that existed at the start were told. */
  isComplete: boolean;
  /** The awaited object is there, and ready. */
  hasAwaited: boolean;
}

/**
 * Kubernetes objects from an API server: those that the selectors of the resources match.
 *
 * `synced` comes when the essential resources are complete, which may take as long as the API server is away, and when
 * awaited objects and all other resources are there, for which it waits at most 30 s.
 */
export class ApiSource implements ObjectSource {
  readonly #clock: Clock;
  readonly #readings: readonly Reading[];
  readonly #stopping = new AbortController();
  #handler: ObjectHandler | undefined;
  #running: Promise<unknown> = Promise.resolve();
  #synced = false;
  /** The time for what is not essential is over. */
  #waitOver = false;
  /** When it began to read, by the clock. */
  #began = 0;
  #waitTimer: Timer | undefined;
  #problemsTimer: Timer | undefined;
  #toldProblems: readonly SourceProblem[] = [];

  constructor(options: ApiSourceOptions) {
    const { client, resources, clock = systemClock, random = Math.random, observe = () => {} } = options;
    this.#clock = clock;
    this.#readings = resources.map((resource) => {
      const reflector = new Reflector(
        { client, clock, random, observe, targets: targetsOf(resource) },
        {
          event: (event) => this.#event(reading, event),
          complete: () => this.#completed(reading),
          problemsChanged: () => this.#problemsChanged(),
        },
      );
      const reading: Reading = { resource, reflector, isComplete: false, hasAwaited: false };
      return reading;
    });
  }

  /** Begins to read. Resolves at once: an API server that is away is a problem, not an error. To be called once. */
  async start(handler: ObjectHandler): Promise<void> {
    this.#handler = handler;
    this.#began = this.#clock.now();
    this.#waitTimer = this.#clock.setTimer(() => {
      this.#waitOver = true;
      this.#problemsChanged();
      this.#trySync();
    }, WAIT_MS);
    const { signal } = this.#stopping;
    const told = (error: unknown) => tellFailure('API reader', error);
    this.#running = Promise.all(this.#readings.map(({ reflector }) => reflector.run(signal).catch(told)));
  }

  /** Nothing is told after this. Resolves when all connections are closed. */
  async stop(): Promise<void> {
    this.#handler = undefined;
    this.#waitTimer?.cancel();
    this.#problemsTimer?.cancel();
    this.#stopping.abort();
    await this.#running;
  }

  /** By resource, when the server last said something about it (by the clock's `now`); the never heard of are not in it. */
  lastActivity(): ReadonlyMap<string, number> {
    const result = new Map<string, number>();
    for (const { reflector } of this.#readings) {
      if (reflector.lastActivity !== undefined) result.set(reflector.target.name, reflector.lastActivity);
    }
    return result;
  }

  /**
   * By resource, since when the server has said nothing about it (by the clock's `now`): its last sign, or the start where it was
   * never heard of and cannot be read.
   */
  silentSince(): ReadonlyMap<string, number> {
    const never = this.#readings.filter(({ reflector }) => reflector.problems().some(({ unread }) => unread));
    return new Map([
      ...never.map(({ reflector }) => [reflector.target.name, this.#began] as const),
      ...this.lastActivity(),
    ]);
  }

  #event(reading: Reading, event: ObjectEvent): void {
    this.#handler?.event(event);
    const { awaited } = reading.resource;
    if (!awaited || objectKey(event.object) !== awaited.object) return;
    reading.hasAwaited = event.type !== 'deleted' && awaited.isReady(event.object);
    this.#problemsChanged();
    this.#trySync();
  }

  #completed(reading: Reading): void {
    reading.isComplete = true;
    this.#handler?.listed?.(reading.resource.kind.kind);
    this.#trySync();
  }

  #trySync(): void {
    if (this.#synced || !this.#readings.every((reading) => this.#isRead(reading))) return;
    this.#synced = true;
    this.#handler?.synced();
  }

  #isRead({ resource, reflector, isComplete, hasAwaited }: Reading): boolean {
    if (resource.essential && !isComplete) return false;
    return this.#waitOver || (resource.awaited ? hasAwaited : reflector.tried);
  }

  #problemsChanged(): void {
    // A list that is refused is not waited for, unless it is essential.
    this.#trySync();
    this.#problemsTimer ??= this.#clock.setTimer(() => {
      this.#problemsTimer = undefined;
      this.#tellProblems();
    }, PROBLEMS_DELAY_MS);
  }

  #tellProblems(): void {
    const problems = this.#readings.flatMap(({ reflector }) => reflector.problems());
    for (const { resource, reflector, isComplete, hasAwaited } of this.#readings) {
      const { awaited } = resource;
      // Of what was never read nobody knows whether it is there: why not is told already.
      if (!awaited || !this.#waitOver || hasAwaited || !isComplete) continue;
      problems.push({ where: reflector.target.name, object: awaited.object, message: awaited.absence });
    }
    if (isDeepStrictEqual(problems, this.#toldProblems)) return;
    this.#toldProblems = problems;
    this.#handler?.problems(problems);
  }
}
