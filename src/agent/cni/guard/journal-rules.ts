import { type DesiredRules, joinRules, type WantedAttachment, wantedBy } from '../../../cni/index.ts';
import type { JournalEntry } from '../../../ipam/index.ts';

/** An entry of the journal, and the network it is of. */
export type NetworkEntry = JournalEntry & { readonly network: string };

interface Known {
  /** What it was worked out from, in JSON. */
  readonly source: string;
  readonly rules: DesiredRules;
}

/** What the pods of a node should have in nftables, by the notes that their ADDs left in the journals. */
export class JournalRules {
  readonly #rulesOf: (attachments: readonly WantedAttachment[]) => DesiredRules;
  /** To work it out takes longer than to read the notes. */
  #known: ReadonlyMap<string, Known> = new Map();

  constructor(rulesOf: (attachments: readonly WantedAttachment[]) => DesiredRules) {
    this.#rulesOf = rulesOf;
  }

  /**
   * The rules of attachments that stand: made, and not being detached, which begins with their link.
   *
   * @param links names of the node's links, read after the entries: what was complete then had its link
   */
  of(entries: readonly NetworkEntry[], links: ReadonlySet<string>): DesiredRules {
    const standing = entries.filter(({ name, complete, note }) => complete && note && links.has(name));
    this.#known = new Map(standing.map((entry) => [`${entry.network} ${entry.name}`, this.#knownOf(entry)]));
    return joinRules([...this.#known.values()].map(({ rules }) => rules));
  }

  #knownOf(entry: NetworkEntry): Known {
    const { network, name, owner, note } = entry;
    const source = JSON.stringify([owner, note]);
    const known = this.#known.get(`${network} ${name}`);
    if (known?.source === source) return known;
    const wanted = wantedBy(network, entry);
    return { source, rules: this.#rulesOf(wanted ? [wanted] : []) };
  }
}
