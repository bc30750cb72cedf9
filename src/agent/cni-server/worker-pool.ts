import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { type Clock, inBackground, NodeplaneError, type Timer } from '../../core/index.ts';
import type { WorkerReply, WorkerRequest } from './worker.ts';

export interface WorkerPoolOptions {
  /** The built program of the thread. */
  readonly file: string;
  readonly clock: Clock;
  /** Threads at most. @default 8 */
  readonly size?: number;
  /** As many threads as this begin at once when they are needed; others when a request has waited. @default one a processor */
  readonly soon?: number;
  /** A thread without work for this long ends, but for one. @default 30000 */
  readonly idleMs?: number;
}

interface Thread {
  readonly worker: Worker;
  job: Job | undefined;
  /** When it became idle. */
  idleSince: number;
}

interface Job {
  readonly request: WorkerRequest;
  readonly resolve: (reply: WorkerReply) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A request that waits for so long waits for those that hold threads without working: for a lock, or another plugin. Most
 * take a few milliseconds, less than it takes to begin a thread.
 */
const PATIENCE_MS = 50;
/** A thread needs little: a request is some kilobytes of objects. */
const LIMITS = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 128 };

/** Threads that each serve one request at a time. They begin when they are needed and end when they are not. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #threads: Thread[] = [];
  readonly #waiting: Job[] = [];
  #timer: Timer | undefined;
  #growth: Timer | undefined;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  /** Begins the first thread, so that the first request does not wait for it. */
  start(): void {
    if (this.#threads.length === 0) this.#begin();
    this.#endIdle();
  }

  /** @throws ERR_CNI_REQUEST when the thread ended over the request */
  run(request: WorkerRequest): Promise<WorkerReply> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      this.#assign();
    });
  }

  /** Ends all threads, also those that work. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#growth?.cancel();
    await Promise.all(this.#threads.splice(0).map(({ worker }) => worker.terminate()));
  }

  #assign(): void {
    while (this.#waiting.length > 0) {
      // The one that worked last: its code is compiled, its memory there.
      const idle = this.#threads.filter(({ job }) => !job).sort((a, b) => b.idleSince - a.idleSince)[0];
      const { soon = Math.max(2, availableParallelism()), size = 8 } = this.#options;
      if (!idle && this.#threads.length >= Math.min(soon, size)) {
        this.#growLater(size);
        return;
      }
      let thread: Thread;
      try {
        thread = idle ?? this.#begin();
      } catch (cause) {
        // Those that work will take it.
        if (this.#threads.length > 0) return;
        const reason = 'A thread for a CNI request cannot be begun';
        this.#waiting.shift()!.reject(new NodeplaneError('ERR_CNI_REQUEST', reason, { cause }));
        continue;
      }
      thread.job = this.#waiting.shift()!;
      thread.worker.ref();
      thread.worker.postMessage(thread.job.request);
    }
    this.#growth?.cancel();
    this.#growth = undefined;
  }

  #growLater(size: number): void {
    if (this.#threads.length >= size || this.#growth) return;
    const [first] = this.#waiting;
    this.#growth = this.#options.clock.setTimer(() => {
      this.#growth = undefined;
      // The new thread is idle for as long as it takes to look.
      if (this.#waiting[0] === first) this.#begin();
      this.#assign();
    }, PATIENCE_MS);
  }

  #begin(): Thread {
    const worker = new Worker(this.#options.file, { resourceLimits: LIMITS });
    const thread: Thread = { worker, job: undefined, idleSince: this.#options.clock.now() };
    // An idle thread is no reason to stay.
    worker.unref();
    worker.on('message', (reply: WorkerReply) => {
      const { job } = thread;
      thread.job = undefined;
      worker.unref();
      thread.idleSince = this.#options.clock.now();
      job?.resolve(reply);
      this.#assign();
    });
    let cause: unknown;
    worker.on('error', (error) => {
      cause = error;
    });
    worker.on('exit', () => {
      const at = this.#threads.indexOf(thread);
      if (at >= 0) this.#threads.splice(at, 1);
      thread.job?.reject(new NodeplaneError('ERR_CNI_REQUEST', 'The thread of a CNI request ended over it', { cause }));
      this.#assign();
    });
    this.#threads.push(thread);
    return thread;
  }

  #endIdle(): void {
    const { clock, idleMs = 30_000 } = this.#options;
    const idle = this.#threads.filter(({ job, idleSince }) => !job && clock.now() - idleSince >= idleMs);
    const [first] = this.#threads;
    for (const thread of idle.filter((candidate) => candidate !== first)) {
      this.#threads.splice(this.#threads.indexOf(thread), 1);
      inBackground('CNI thread', () => thread.worker.terminate());
    }
    this.#timer = clock.setTimer(() => this.#endIdle(), idleMs);
  }
}
