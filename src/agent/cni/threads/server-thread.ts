import { Worker } from 'node:worker_threads';
import { type Clock, inBackground, NodeplaneError, type Timer } from '../../../core/index.ts';
import { addOwnPort, ownCommits, removeOwnPort } from '../../../netlink/nftables/index.ts';
import { DescriptorLedger, libc, lockReleases, procSysRoot } from '../../../sys/index.ts';

/** What a thread of the server is begun with. */
export interface ThreadStart {
  /** Where it notes the descriptors it has open. */
  readonly ledger: SharedArrayBuffer;
  /** Where it finds sysctls. */
  readonly procSysRoot: string;
  /** Whether it will be there when others are not needed any more: it takes little memory, and longer to begin. */
  readonly stays: boolean;
  /** By which it and the others tell each other that they gave a lock back. */
  readonly lockReleases: SharedArrayBuffer;
  /** In which it and the others count their transactions of nf_tables. */
  readonly ownCommits: SharedArrayBuffer;
}

/** See the constructor. */
export interface ServerThreadOptions extends Pick<ThreadStart, 'stays'> {
  readonly free: () => void;
  readonly end: () => void;
}

/** A thread tells over which sockets it changes nf_tables, whenever that changes: what it does there is no change by others. */
export interface PortNotice {
  readonly nftPorts: readonly number[];
}

/** A thread needs little: a request is some kilobytes of objects. The young generation is three semi-spaces. */
const LIMITS = { maxYoungGenerationSizeMb: 12, maxOldGenerationSizeMb: 128 };
/** A thread that is ended stops at once, unless it is inside a system call. */
const ENDING_MS = 1000;

interface Job {
  readonly resolve: (reply: never) => void;
  readonly reject: (error: Error) => void;
  readonly limit: Timer;
}

/**
 * A thread that does one job at a time, each within a limit. Ending a thread closes nothing it had open: sockets, and files
 * whose locks would be held for as long as the process lives. So it is closed here, however the thread ends.
 */
export class ServerThread {
  readonly #clock: Clock;
  readonly #worker: Worker;
  readonly #ledger = new DescriptorLedger();
  readonly #onFree: () => void;
  readonly #onEnd: () => void;
  #job: Job | undefined;
  #cause: unknown;
  #ownPorts: readonly number[] = [];
  #overLimit = '';
  #exited = false;

  /**
   * @param file the built program of the thread
   * @param options `free` is called when a job is done and the next may begin; `end` when the thread is no more or was
   *   given up: then it is stuck in a system call, and nothing of its program runs any more; it is called again when
   *   that ends
   */
  constructor(file: string, clock: Clock, { stays, free, end }: ServerThreadOptions) {
    this.#clock = clock;
    this.#onFree = free;
    this.#onEnd = end;
    const workerData: ThreadStart = {
      stays,
      ledger: this.#ledger.memory,
      procSysRoot: procSysRoot(),
      lockReleases: lockReleases(),
      ownCommits: ownCommits(),
    };
    this.#worker = new Worker(file, { resourceLimits: LIMITS, workerData });
    // An idle thread is no reason to stay.
    this.#worker.unref();
    this.#worker.on('message', (reply: object) => {
      if ('nftPorts' in reply) {
        this.#noteOwnPorts((reply as PortNotice).nftPorts);
        return;
      }
      const job = this.#takeJob();
      if (!job) return;
      this.#worker.unref();
      job.resolve(reply as never);
      this.#onFree();
    });
    this.#worker.on('error', (error) => {
      this.#cause = error;
    });
    this.#worker.on('exit', () => {
      this.#exited = true;
      this.#close();
    });
  }

  get isBusy(): boolean {
    return this.#job !== undefined;
  }

  /** Whether it runs still, or hangs in a system call. */
  get isAlive(): boolean {
    return !this.#exited;
  }

  /**
   * Does one job. The thread ends over one that throws, and over one that takes too long.
   *
   * @throws ERR_CNI_REQUEST when the thread ended over it
   */
  run<Reply>(request: unknown, limitMs: number): Promise<Reply> {
    return new Promise<Reply>((resolve, reject) => {
      const limit = this.#clock.setTimer(() => {
        this.#overLimit = `: it did not end within ${limitMs / 1000} s`;
        inBackground('CNI thread', () => this.end());
      }, limitMs);
      this.#job = { resolve: resolve as Job['resolve'], reject, limit };
      this.#worker.ref();
      this.#worker.postMessage(request);
    });
  }

  /** Ends it, also in the middle of a job; one that hangs in a system call is given up after a second. */
  async end(): Promise<void> {
    let timer: Timer | undefined;
    const late = new Promise<void>((resolve) => {
      timer = this.#clock.setTimer(resolve, ENDING_MS);
    });
    await Promise.race([this.#worker.terminate(), late]);
    timer?.cancel();
    this.#close();
  }

  /** Gives back what it had open and answers for its job; what there is no more of the second time. */
  #close(): void {
    for (const fd of this.#ledger.take()) closeQuietly(fd);
    this.#noteOwnPorts([]);
    const message = `The thread of a CNI request ended over it${this.#overLimit}`;
    this.#takeJob()?.reject(new NodeplaneError('ERR_CNI_REQUEST', message, { cause: this.#cause }));
    this.#onEnd();
  }

  #noteOwnPorts(ports: readonly number[]): void {
    for (const port of this.#ownPorts) if (!ports.includes(port)) removeOwnPort(port);
    for (const port of ports) if (!this.#ownPorts.includes(port)) addOwnPort(port);
    this.#ownPorts = ports;
  }

  #takeJob(): Job | undefined {
    const job = this.#job;
    this.#job = undefined;
    job?.limit.cancel();
    return job;
  }
}

function closeQuietly(fd: number): void {
  try {
    libc().close(fd);
  } catch {
    // It was just about to be closed, or not quite open.
  }
}
