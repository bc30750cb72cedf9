import { LIMITS } from './limits.ts';

/** Why a part of a Service is not served although it could be read. */
export type Restriction =
  /** The destination belongs to another Service. */
  | 'taken'
  /** The address may be no Service's. */
  | 'refused'
  /** It is more than a Service, or all of them together, may ask of a node (limits.ts). */
  | 'limit';

export const RESTRICTIONS: readonly Restriction[] = ['taken', 'refused', 'limit'];

const NO_RESTRICTIONS: ReadonlySet<Restriction> = new Set();

/** Gathers what cannot be used of one Service, in words; never more of them than somebody would read. */
export class Findings {
  readonly #texts: string[] = [];
  /** Undefined while there are none, as of nearly all Services: an empty set takes 200 bytes. */
  #restrictions: Set<Restriction> | undefined;
  #untold = 0;

  /** Something that cannot be read or makes no sense. */
  push(text: string): void {
    if (this.#texts.length < LIMITS.problems) this.#texts.push(text);
    else this.#untold++;
  }

  /** Something that is not allowed or not had. */
  restrict(restriction: Restriction, text: string): void {
    this.#restrictions ??= new Set();
    this.#restrictions.add(restriction);
    this.push(text);
  }

  get problems(): readonly string[] {
    return this.#untold === 0 ? this.#texts : [...this.#texts, `${this.#untold} more problems are not listed`];
  }

  get restrictions(): ReadonlySet<Restriction> {
    return this.#restrictions ?? NO_RESTRICTIONS;
  }
}
