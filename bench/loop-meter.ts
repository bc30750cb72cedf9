import { openSync, readSync } from 'node:fs';
import { setImmediate as eventLoop } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** What kept the event loop from turning. */
export interface LongestBlock {
  readonly ms: number;
  /** What was going on in the middle of it. */
  readonly during: string;
}

/** Watches the event loop turn, and how much memory is in use. */
export class LoopMeter {
  readonly #spans: { readonly what: string; readonly from: number; to: number }[] = [];
  #longest: { ms: number; at: number } = { ms: 0, at: 0 };
  #peak = 0;
  #lastSample = 0;
  #running = false;

  /** Begins to watch. */
  start(): void {
    this.#running = true;
    this.#longest = { ms: 0, at: 0 };
    this.#peak = 0;
    this.#spans.length = 0;
    let last = performance.now();
    let lastCpu = cpuMs();
    const turn = () => {
      const now = performance.now();
      const cpu = cpuMs();
      if (cpu - lastCpu > this.#longest.ms) this.#longest = { ms: cpu - lastCpu, at: (now + last) / 2 };
      if (now - this.#lastSample > 20) {
        this.#lastSample = now;
        this.#peak = Math.max(this.#peak, memoryMiB());
      }
      last = performance.now();
      lastCpu = cpuMs();
      if (this.#running) setImmediate(turn);
    };
    setImmediate(turn);
  }

  /** Says that something begins; call what is returned at its end. */
  begin(what: string): () => void {
    const span = { what, from: performance.now(), to: Number.POSITIVE_INFINITY };
    this.#spans.push(span);
    return () => {
      span.to = performance.now();
    };
  }

  /** Ends the watching. Call it a turn of the loop after what is measured. */
  stop(): { readonly longest: LongestBlock; readonly peakMiB: number } {
    this.#running = false;
    const { ms, at } = this.#longest;
    const span = this.#spans.findLast(({ from, to }) => from <= at && at <= to);
    return { longest: { ms, during: span?.what ?? 'decode' }, peakMiB: this.#peak };
  }
}

const schedstat = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
const buffer = Buffer.alloc(64);

/** Milliseconds this thread has worked, in JavaScript and in the kernel: what else runs on the machine does not count. */
export function cpuMs(): number {
  const length = readSync(schedstat, buffer, 0, buffer.length, 0);
  return Number(buffer.toString('latin1', 0, length).split(' ')[0]) / 1e6;
}

/** What JavaScript holds, buffers included. */
function memoryMiB(): number {
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 2 ** 20;
}

/** What lives, once everything else has been collected: MiB. */
export async function settledMemory(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  await eventLoop();
  collect();
  return memoryMiB();
}
