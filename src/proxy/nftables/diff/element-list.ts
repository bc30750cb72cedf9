import type { NftElement, NftElements } from '../../../netlink/nftables/index.ts';
import { addGroupElements, type PlacedGroup } from './placed-group.ts';

/** Elements made at once: about as many as one message holds. */
const CHUNK = 1000;

/**
 * The elements of a set, each made when it is asked for and forgotten when the caller forgets it: a hundred thousand at
 * once cost more time in the collection of garbage than everything else a full sync does.
 */
export class ElementList implements Iterable<NftElement> {
  readonly #parts: (PlacedGroup | NftElement)[] = [];
  #size = 0;

  /** How many elements. */
  get size(): number {
    return this.#size;
  }

  add(part: PlacedGroup | NftElement): void {
    this.#parts.push(part);
    this.#size += sizeOf(part);
  }

  *[Symbol.iterator](): Generator<NftElement> {
    for (const part of this.#parts) {
      if ('slots' in part) yield* make([part]);
      else yield part;
    }
  }

  /** The list in pieces, as objects of a transaction; reading `elements` of one makes them. */
  chunks(place: Pick<NftElements, 'family' | 'table' | 'set'>): NftElements[] {
    const chunks: NftElements[] = [];
    let parts: (PlacedGroup | NftElement)[] = [];
    let size = 0;
    const close = () => {
      if (parts.length > 0) chunks.push(new LazyElements(place, parts));
      parts = [];
      size = 0;
    };
    for (const part of this.#parts) {
      parts.push(part);
      size += sizeOf(part);
      if (size >= CHUNK) close();
    }
    close();
    return chunks;
  }
}

class LazyElements implements NftElements {
  readonly kind = 'elements';
  readonly family: NftElements['family'];
  readonly table: string;
  readonly set: string;
  readonly #parts: readonly (PlacedGroup | NftElement)[];

  constructor(place: Pick<NftElements, 'family' | 'table' | 'set'>, parts: readonly (PlacedGroup | NftElement)[]) {
    this.family = place.family;
    this.table = place.table;
    this.set = place.set;
    this.#parts = parts;
  }

  get elements(): NftElement[] {
    return make(this.#parts);
  }
}

function make(parts: readonly (PlacedGroup | NftElement)[]): NftElement[] {
  const elements: NftElement[] = [];
  for (const part of parts) {
    if ('slots' in part) addGroupElements(part, elements);
    else elements.push(part);
  }
  return elements;
}

function sizeOf(part: PlacedGroup | NftElement): number {
  return 'slots' in part ? part.slots.length : 1;
}
