import { createHash } from 'node:crypto';
import { type Cidr, spanOfCidr } from '../core/index.ts';
import { blockAt, blocksTouched, type Pool } from './pool.ts';

/**
 * Which blocks of a pool are free. Ranges of any size are counted at every block that they touch, so that one of an earlier
 * block size is in nobody's way and takes nobody by surprise.
 */
export class TakenBlocks {
  readonly pool: Pool;
  /** By index: how many ranges touch the block. */
  readonly #ranges: Uint32Array;
  #free: number;

  constructor(pool: Pool) {
    this.pool = pool;
    this.#ranges = new Uint32Array(pool.blockCount);
    this.#free = pool.blockCount;
  }

  get free(): number {
    return this.#free;
  }

  /** Takes a range, wholly or partly in the pool or not at all. The same one may be taken again: each time counts. */
  take(cidr: Cidr): void {
    this.#count(cidr, 1);
  }

  /** Undoes one `take`. */
  giveBack(cidr: Cidr): void {
    this.#count(cidr, -1);
  }

  /** Whether all addresses of a range are in blocks of the pool. */
  covers(cidr: Cidr): boolean {
    const { family, first, last } = spanOfCidr(cidr);
    const { span } = this.pool;
    return family === span.family && first >= span.first && last <= span.last;
  }

  /** The same of a range that was taken, if besides no other range touches the blocks that it touches. */
  isAlone(cidr: Cidr): boolean {
    const touched = this.covers(cidr) ? blocksTouched(this.pool, cidr) : undefined;
    if (!touched) return false;
    for (let index = touched.first; index <= touched.last; index++) if (this.#ranges[index] !== 1) return false;
    return true;
  }

  /**
   * A free block, by a walk through the pool that begins at a place, and goes on in steps, which both come from the node's
   * name: nodes that start together seldom want the same block, and a node that tries again wants the same one again.
   *
   * @param isRefused blocks not to be taken although they look free
   * @returns its range; undefined: there is none
   */
  findFree(node: string, isRefused: (cidr: string) => boolean): string | undefined {
    const { pool } = this;
    const hash = createHash('sha256').update(node).digest();
    // All numbers of blocks are powers of two: an odd step meets each block once.
    const step = (hash.readUInt32BE(4) % pool.blockCount) | 1;
    let index = hash.readUInt32BE(0) % pool.blockCount;
    for (let left = this.#free; left > 0; index = (index + step) % pool.blockCount) {
      if (this.#ranges[index] !== 0) continue;
      const cidr = blockAt(pool, index);
      if (!isRefused(cidr)) return cidr;
      left--;
    }
    return undefined;
  }

  #count(cidr: Cidr, by: 1 | -1): void {
    const touched = blocksTouched(this.pool, cidr);
    if (!touched) return;
    for (let index = touched.first; index <= touched.last; index++) {
      const before = this.#ranges[index]!;
      this.#ranges[index] = before + by;
      if (before === 0) this.#free--;
      else if (before + by === 0) this.#free++;
    }
  }
}
