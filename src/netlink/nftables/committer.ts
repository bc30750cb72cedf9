import { inSlices } from '../../core/index.ts';
import type { BatchTransport } from '../transport.ts';
import { type Batch, BatchEncoder } from './batch.ts';
import { makeRoomFor, readAnswers } from './commit.ts';
import { NOTHING_COMMITTED } from './committed-elsewhere.ts';
import { countOwnCommit } from './listening/absence.ts';
import { addOwnPort, removeOwnPort } from './listening/own-ports.ts';
import type { CommitOptions, CommitReport, NftChange } from './object/model.ts';

/** A batch larger than this gives its memory back. */
const KEEP_BYTES = 1 << 20;

/** Commits transactions over one socket, one after the other. */
export class Committer {
  readonly #transport: BatchTransport;
  #encoder = new BatchEncoder();
  #nextSequence = 1;

  constructor(transport: BatchTransport) {
    this.#transport = transport;
    addOwnPort(transport.portId);
  }

  /** See `NftWriter.commit`. */
  commit(changes: readonly NftChange[], options: CommitOptions = {}): CommitReport {
    if (changes.length === 0) return NOTHING_COMMITTED;
    const first = this.#nextSequence;
    const batch = this.#encoder.encode(changes, first, options);
    const prepared = this.#prepare(batch, first, options);
    const started = performance.now();
    this.#transport.send(prepared.batch.bytes);
    return this.#finish(changes, prepared, performance.now() - started);
  }

  /**
   * As `commit`, with the event loop running while the transaction is written down, in between, and while the kernel works.
   * Must not be called again before it is done.
   */
  async commitAsync(changes: readonly NftChange[], options: CommitOptions = {}): Promise<CommitReport> {
    if (changes.length === 0) return NOTHING_COMMITTED;
    const first = this.#nextSequence;
    const batch = await inSlices(this.#encoder.encodeInSteps(changes, first, options));
    const prepared = this.#prepare(batch, first, options);
    const started = performance.now();
    await this.#transport.sendAsync(prepared.batch.bytes);
    return this.#finish(changes, prepared, performance.now() - started);
  }

  /** Safe to call twice. */
  close(): void {
    removeOwnPort(this.#transport.portId);
    this.#transport.close();
  }

  #prepare(batch: Batch, first: number, options: CommitOptions): Prepared {
    this.#nextSequence = (first + batch.messages) >>> 0;
    makeRoomFor(this.#transport, batch);
    // What is only checked makes no generation.
    const expectGeneration = options.checkOnly ? undefined : options.expectGeneration;
    return { batch, first, expectGeneration };
  }

  #finish(changes: readonly NftChange[], { batch, first, expectGeneration }: Prepared, kernelMs: number): CommitReport {
    try {
      const told = readAnswers(this.#transport, batch, changes, first);
      const generation = told ?? (expectGeneration === undefined ? undefined : nextGeneration(expectGeneration));
      if (generation !== undefined) countOwnCommit();
      return {
        generation,
        messages: batch.messages,
        bytes: batch.bytes.length,
        kernelSeconds: kernelMs / 1000,
      };
    } finally {
      if (batch.bytes.length > KEEP_BYTES) this.#encoder = new BatchEncoder();
    }
  }
}

interface Prepared {
  readonly batch: Batch;
  readonly first: number;
  readonly expectGeneration: number | undefined;
}

/** Generations count up by one with each transaction and pass over 0. */
function nextGeneration(generation: number): number {
  return (generation + 1) >>> 0 || 1;
}
