/** One thing that a clean-up takes away. */
export interface Removal {
  /** Where it is and what it is called: `nftables, table ip nodeplane`. Equal texts are one thing. */
  readonly object: string;
  /** What shows that it is ours, or a kube-proxy's. */
  readonly why: string;
  /** It has to stay for others' sake, and is emptied. @default false */
  readonly stays?: boolean;
}

/**
 * What a clean-up takes away, noted by the same code that does it. A dry run notes and does nothing, so that it can neither
 * forget nor invent anything.
 */
export class Removals {
  readonly #isDryRun: boolean;
  readonly #noted = new Map<string, Removal>();

  constructor({ dryRun }: { readonly dryRun: boolean }) {
    this.#isDryRun = dryRun;
  }

  /** Notes what is about to be removed, and says whether to do it. */
  note(...removals: readonly Removal[]): boolean {
    for (const removal of removals) {
      const known = this.#noted.get(removal.object);
      // What one part empties, a later one may take away.
      if (!known || (known.stays && !removal.stays)) this.#noted.set(removal.object, removal);
    }
    return !this.#isDryRun;
  }

  /** Everything noted, each once, in the order in which it goes. */
  all(): readonly Removal[] {
    return [...this.#noted.values()];
  }
}
