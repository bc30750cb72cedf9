import { type Document, isAlias, isMap, isNode, isPair, isScalar, isSeq, type Node, type Scalar } from 'yaml';

/** A document that becomes more than this by its merge keys is a bomb: ten lines can ask for ten thousand million entries. */
const MOST_MERGED_ENTRIES = 1_000_000;

/** Aliases of a document. The `yaml` package looks for the anchor of each among all before it. */
const MOST_ALIASES = 10_000;

/** Why a document is not turned into data. `offset` is the character it was found at. */
export interface DocumentFault {
  readonly message: string;
  readonly offset: number;
}

/**
 * Looks at a parsed document before it becomes data: for a key that a mapping has twice (the `yaml` package compares each key
 * with all others, minutes for a long mapping), and for merge keys (`<<: *anchor`), each of which copies what it names, with
 * the merge keys in there. What other aliases name is not copied.
 */
export function faultOfDocument(document: Document.Parsed): DocumentFault | undefined {
  const inspection = new Inspection();
  inspection.costOf(document.contents);
  return inspection.fault;
}

class Inspection {
  fault: DocumentFault | undefined;
  /** The latest node of each anchor, as an alias at this place sees it. */
  readonly #anchors = new Map<string, Node>();
  readonly #costs = new Map<Node, number>();
  #aliases = 0;

  /** How many entries have to be made for a node, those of its merges included. */
  costOf(node: unknown): number {
    if (!isNode(node) || this.fault) return 1;
    if (isAlias(node)) {
      this.#aliases++;
      if (this.#aliases > MOST_ALIASES) this.#found(node, `It has more than ${MOST_ALIASES} aliases`);
      return 1;
    }
    if ((isScalar(node) || isMap(node) || isSeq(node)) && node.anchor) this.#anchors.set(node.anchor, node);
    let cost = 1;
    if (isSeq(node)) for (const item of node.items) cost += isPair(item) ? this.costOf(item.value) : this.costOf(item);
    if (isMap(node)) {
      const keys = new Set<unknown>();
      for (const { key, value } of node.items) {
        if (isScalar(key)) this.#noteKey(key, keys);
        else this.costOf(key);
        cost += this.costOf(value) + (isMergeKey(key) ? this.#mergedCost(value) : 0);
      }
    }
    this.#costs.set(node, cost);
    if (cost > MOST_MERGED_ENTRIES) {
      this.#found(node, `Its merge keys ("<<") add up to more than ${MOST_MERGED_ENTRIES} entries`);
    }
    return cost;
  }

  #noteKey(key: Scalar, keys: Set<unknown>): void {
    if (key.anchor) this.#anchors.set(key.anchor, key);
    if (keys.has(key.value))
      this.#found(key, 'Map keys must be unique; keep one of the two, or put "---" between two objects');
    keys.add(key.value);
  }

  #found(node: Node, message: string): void {
    this.fault ??= { message, offset: node.range?.[0] ?? 0 };
  }

  /** Of what a merge key names: an alias, a mapping, or a list of them. */
  #mergedCost(value: unknown): number {
    if (isAlias(value)) {
      const source = this.#anchors.get(value.source);
      if (!source) return 0;
      // What is not counted yet lies around this place: it would be merged into itself.
      const cost = this.#costs.get(source) ?? Number.POSITIVE_INFINITY;
      return isSeq(source) ? cost + this.#mergedCost(source) : cost;
    }
    if (isSeq(value)) return value.items.reduce<number>((sum, item) => sum + this.#mergedCost(item), 0);
    return isNode(value) ? (this.#costs.get(value) ?? 0) : 0;
  }
}

function isMergeKey(key: unknown): boolean {
  return isScalar(key) && typeof key.value === 'symbol' && key.value.description === '<<';
}
