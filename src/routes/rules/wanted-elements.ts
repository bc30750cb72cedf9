import { sameTexts } from '../../core/index.ts';
import type { Element } from './elements.ts';

/** What has to change in the sets. */
export interface ElementChanges {
  readonly joined: readonly Element[];
  readonly left: readonly Element[];
}

/**
 * The elements that the sets are to have, by who wants them. Several may want the same one, as long as one of them does it is
 * there. The work of a change depends on the elements of its owner alone.
 */
export class WantedElements {
  readonly #byOwner = new Map<string, readonly Element[]>();
  /** How many want each. */
  readonly #wanted = new Map<Element, number>();
  /** Those that came or went since changes were taken, with whether they were wanted then. */
  readonly #touched = new Map<Element, boolean>();

  /** An owner wants these from now on, and nothing else. Returns whether there is anything to take. */
  set(owner: string, elements: readonly Element[]): boolean {
    const before = this.#byOwner.get(owner) ?? [];
    const distinct = [...new Set(elements)];
    if (sameTexts(distinct, before)) return this.#touched.size > 0;
    if (distinct.length > 0) this.#byOwner.set(owner, distinct);
    else this.#byOwner.delete(owner);
    for (const element of distinct) this.#count(element, 1);
    for (const element of before) this.#count(element, -1);
    return this.#touched.size > 0;
  }

  /** All of them, each once. */
  all(): Element[] {
    return [...this.#wanted.keys()];
  }

  /** All of them, each once. What changed until now is in it, and need not be taken any more. */
  takeAll(): Element[] {
    this.#touched.clear();
    return this.all();
  }

  /** What changed since elements were taken. */
  takeChanges(): ElementChanges {
    const changed = [...this.#touched].filter(([element, before]) => this.#wanted.has(element) !== before);
    this.#touched.clear();
    return {
      joined: changed.flatMap(([element, before]) => (before ? [] : [element])),
      left: changed.flatMap(([element, before]) => (before ? [element] : [])),
    };
  }

  #count(element: Element, change: 1 | -1): void {
    const before = this.#wanted.get(element) ?? 0;
    const after = before + change;
    if (after > 0) this.#wanted.set(element, after);
    else this.#wanted.delete(element);
    if (before > 0 === after > 0 || this.#touched.has(element)) return;
    this.#touched.set(element, before > 0);
  }
}
