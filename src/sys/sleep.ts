/** Holds up the calling thread, and nothing else that can wait: for code that is synchronous because the kernel is. */
export function sleepSync(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
