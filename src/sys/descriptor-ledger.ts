const SLOTS = 128;
/** A slot holds a descriptor and one more, so that fresh memory is empty. */
const EMPTY = 0;

/**
 * Which descriptors a thread has open, in memory it shares with the thread that may have to end it. A descriptor is closed by
 * whoever takes it off the ledger: a thread that comes back from a system call after it was given up finds nothing there any
 * more, and must not close what has the number by then.
 */
export class DescriptorLedger {
  readonly memory: SharedArrayBuffer;
  readonly #slots: Int32Array;
  /** What found no room: nobody but this thread can close it. A request opens a dozen. */
  readonly #beyond = new Set<number>();

  /** @param memory of the same ledger in another thread. @default a new one */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(4 * SLOTS)) {
    this.memory = memory;
    this.#slots = new Int32Array(memory);
  }

  note(fd: number): void {
    const slot = this.#slots.indexOf(EMPTY);
    if (slot < 0) this.#beyond.add(fd);
    else Atomics.store(this.#slots, slot, fd + 1);
  }

  /** Takes a descriptor off; false when the other thread has done so. */
  forget(fd: number): boolean {
    const slot = this.#slots.indexOf(fd + 1);
    if (slot < 0) return this.#beyond.delete(fd);
    return Atomics.compareExchange(this.#slots, slot, fd + 1, EMPTY) === fd + 1;
  }

  /** Empties it; returns what was open. */
  take(): number[] {
    return [...this.#slots.keys()].flatMap((slot) => {
      const value = Atomics.exchange(this.#slots, slot, EMPTY);
      return value === EMPTY ? [] : [value - 1];
    });
  }
}
