/** Consecutive values of one length that begin with the same bits: the addresses of a range, or one address. */
export interface Block {
  /** In network order. Bits behind the prefix do not matter. */
  readonly bytes: Uint8Array;
  readonly prefixLength: number;
}

/** How many blocks lie together: a piece of twice as many is cut in two. */
const PIECE = 64;

/**
 * Blocks of which no two overlap, in order. They lie in pieces: to put one into the middle of a list of ten thousand the engine
 * moves half of them, and copies them all when the list has grown.
 */
export class DisjointBlocks<T extends Block> {
  /** None is empty, but the only one. */
  readonly #pieces: T[][] = [[]];

  /** Takes a block in; false, and nothing is done, when one overlaps that is there. */
  add(block: T): boolean {
    const { piece, at } = this.#placeOf(block);
    const blocks = this.#pieces[piece]!;
    const next = blocks[at];
    if (next && compareBlocks(next, block) === 0) return false;
    if (at === blocks.length) blocks.push(block);
    else blocks.splice(at, 0, block);
    // Two new lists: the old one keeps its room.
    if (blocks.length >= 2 * PIECE) this.#pieces.splice(piece, 1, blocks.slice(0, PIECE), blocks.slice(PIECE));
    return true;
  }

  /** Takes out a block that is there. */
  remove(block: T): void {
    const { piece, at } = this.#placeOf(block);
    const blocks = this.#pieces[piece]!;
    if (blocks[at] !== block) return;
    blocks.splice(at, 1);
    if (blocks.length === 0 && this.#pieces.length > 1) this.#pieces.splice(piece, 1);
  }

  /** Those that overlap with a block, in order. */
  overlapping(block: Block): T[] {
    const found: T[] = [];
    const { piece, at } = this.#placeOf(block);
    for (let here = piece, from = at; here < this.#pieces.length; here++, from = 0) {
      const blocks = this.#pieces[here]!;
      for (; from < blocks.length; from++) {
        if (compareBlocks(blocks[from]!, block) !== 0) return found;
        found.push(blocks[from]!);
      }
    }
    return found;
  }

  /** Where the first block is that does not come before this one, or would be: by halves, in the last piece at the latest. */
  #placeOf(block: Block): { readonly piece: number; readonly at: number } {
    const pieces = this.#pieces;
    let piece = 0;
    for (let high = pieces.length - 1; piece < high; ) {
      const middle = (piece + high) >>> 1;
      if (compareBlocks(lastOf(pieces[middle]!), block) < 0) piece = middle + 1;
      else high = middle;
    }
    const blocks = pieces[piece]!;
    let at = 0;
    for (let high = blocks.length; at < high; ) {
      const middle = (at + high) >>> 1;
      if (compareBlocks(blocks[middle]!, block) < 0) at = middle + 1;
      else high = middle;
    }
    return { piece, at };
  }
}

function lastOf<T>(list: readonly T[]): T {
  return list[list.length - 1]!;
}

/** By length, then as numbers; 0: they overlap. Values of different lengths never lie between each other. */
export function compareBlocks(a: Block, b: Block): number {
  const left = a.bytes;
  const right = b.bytes;
  if (left.length !== right.length) return left.length - right.length;
  let bits = Math.min(a.prefixLength, b.prefixLength);
  // Buffer.compare takes several times as long for so few bytes.
  for (let at = 0; bits > 0; at++, bits -= 8) {
    let difference = left[at]! ^ right[at]!;
    if (difference === 0) continue;
    if (bits < 8) difference &= 0xff << (8 - bits);
    if (difference !== 0) return left[at]! - right[at]!;
  }
  return 0;
}
