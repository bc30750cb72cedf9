const SLOTS = 128;
/** A slot holds a descriptor and one more, so that fresh memory is empty. */
const EMPTY = 0;

/**
 * Which descriptors a thread has open, in memory it shares with the thread that may have to end it. What finds no room is
 * not noted: a request opens a dozen.
 */
export class DescriptorLedger {
  readonly memory: SharedArrayBuffer;
  readonly #slots: Int32Array;

  /** @param memory of the same ledger in another thread. @default a new one */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(4 * SLOTS)) {
    this.memory = memory;
    this.#slots = new Int32Array(memory);
  }

  note(fd: number): void {
    const slot = this.#slots.indexOf(EMPTY);
    if (slot >= 0) Atomics.store(this.#slots, slot, fd + 1);
  }

  forget(fd: number): void {
    const slot = this.#slots.indexOf(fd + 1);
    if (slot >= 0) Atomics.store(this.#slots, slot, EMPTY);
  }

  /** Empties it; returns what was open. */
  take(): number[] {
    return [...this.#slots.keys()].flatMap((slot) => {
      const value = Atomics.exchange(this.#slots, slot, EMPTY);
      return value === EMPTY ? [] : [value - 1];
    });
  }
}
