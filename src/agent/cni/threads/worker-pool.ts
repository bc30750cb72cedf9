import { availableParallelism } from 'node:os';
import { type Clock, inBackground, NodeplaneError, type Timer } from '../../../core/index.ts';
import { ServerThread } from './server-thread.ts';
import type { WorkerReply, WorkerTask } from './tasks.ts';

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
  /**
   * How long a job may take. The longest that is meant to be: another plugin for the addresses that takes its 60 seconds,
   * and again to take them back, with two locks that are waited for. @default 150000
   */
  readonly limitMs?: number;
}

interface Member {
  readonly thread: ServerThread;
  /** When it became idle. */
  idleSince: number;
}

interface Job {
  readonly task: WorkerTask;
  readonly resolve: (reply: never) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A request that waits for so long waits for those that hold threads without working: for a lock, or another plugin. Most
 * take a few milliseconds, less than it takes to begin a thread.
 */
const PATIENCE_MS = 50;

/** Threads that each serve one request at a time. They begin when they are needed and end when they are not, or hang. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #members: Member[] = [];
  /** Threads that were given up and hang in a system call: as many may as there may be threads. */
  readonly #stuck = new Set<ServerThread>();
  readonly #waiting: Job[] = [];
  #timer: Timer | undefined;
  #growth: Timer | undefined;
  #stopped = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  /** Begins the first thread, so that the first request does not wait for it. May be called again. */
  start(): void {
    if (this.#members.length === 0) this.#begin();
    if (!this.#timer) this.#endIdle();
  }

  /** @throws ERR_CNI_REQUEST when the thread ended over the request, every thread there may be hangs, or the pool stopped */
  run<T extends WorkerTask>(task: T): Promise<WorkerReply<T>> {
    const { size = 8 } = this.#options;
    if (this.#stopped) return Promise.reject(stopped());
    if (this.#stuck.size >= size) {
      const message = `Cannot begin a thread for a CNI request: ${size} hang in system calls; look at their /proc/${process.pid}/task/*/stack, and restart the agent`;
      return Promise.reject(new NodeplaneError('ERR_CNI_REQUEST', message));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ task, resolve, reject });
      this.#assign();
    });
  }

  /** Ends all threads, also those that work; what waits for one is refused. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#growth?.cancel();
    // Each thread that ends would be replaced by one for them.
    for (const { reject } of this.#waiting.splice(0)) reject(stopped());
    await Promise.all(this.#members.splice(0).map(({ thread }) => thread.end()));
  }

  #assign(): void {
    while (this.#waiting.length > 0) {
      // The one that worked last: its code is compiled, its memory there.
      const idle = this.#members.filter(({ thread }) => !thread.isBusy).sort((a, b) => b.idleSince - a.idleSince)[0];
      const { soon = Math.max(2, availableParallelism()), size = 8, limitMs = 150_000 } = this.#options;
      if (!idle && this.#members.length >= Math.min(soon, size)) {
        this.#growLater(size);
        return;
      }
      let member: Member;
      try {
        member = idle ?? this.#begin();
      } catch (cause) {
        // Those that work will take it.
        if (this.#members.length > 0) return;
        const reason = 'A thread for a CNI request cannot be begun';
        this.#waiting.shift()!.reject(new NodeplaneError('ERR_CNI_REQUEST', reason, { cause }));
        continue;
      }
      const { task, resolve, reject } = this.#waiting.shift()!;
      member.thread.run<never>(task, limitMs).then(resolve, reject);
    }
    this.#growth?.cancel();
    this.#growth = undefined;
  }

  #growLater(size: number): void {
    if (this.#members.length >= size || this.#growth) return;
    const [first] = this.#waiting;
    this.#growth = this.#options.clock.setTimer(() => {
      this.#growth = undefined;
      // The new thread is idle for as long as it takes to look.
      if (this.#waiting[0] === first) this.#begin();
      this.#assign();
    }, PATIENCE_MS);
  }

  #begin(): Member {
    const { file, clock } = this.#options;
    const member: Member = {
      thread: new ServerThread(file, clock, {
        stays: this.#members.length === 0,
        free: () => {
          member.idleSince = clock.now();
          this.#assign();
        },
        end: () => this.#forget(member),
      }),
      idleSince: clock.now(),
    };
    this.#members.push(member);
    return member;
  }

  #forget(member: Member): void {
    const at = this.#members.indexOf(member);
    if (at >= 0) this.#members.splice(at, 1);
    if (member.thread.isAlive) this.#stuck.add(member.thread);
    else this.#stuck.delete(member.thread);
    this.#assign();
  }

  #endIdle(): void {
    const { clock, idleMs = 30_000 } = this.#options;
    const idle = this.#members.filter(({ thread, idleSince }) => !thread.isBusy && clock.now() - idleSince >= idleMs);
    const [first] = this.#members;
    for (const member of idle.filter((candidate) => candidate !== first)) {
      this.#members.splice(this.#members.indexOf(member), 1);
      inBackground('CNI thread', () => member.thread.end());
    }
    this.#timer = clock.setTimer(() => this.#endIdle(), idleMs);
  }
}

function stopped(): NodeplaneError {
  return new NodeplaneError('ERR_CNI_REQUEST', 'Cannot begin a thread for a CNI request: the agent is about to end');
}
