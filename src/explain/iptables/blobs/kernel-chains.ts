import { isChainHead, type LegacyEntry, type LegacyTable } from '../../../sys/index.ts';
import type { LegacyChain, LegacyChains } from '../legacy-rules.ts';
import type { ParsedRule } from '../parse-rule.ts';
import type { BlobContext } from './blob.ts';
import { decodeEntry } from './entry.ts';

/** Built-in chains by NF_INET_*. */
const BUILT_IN = ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'];
/** NF_DROP as a verdict of the standard target: -NF_DROP - 1. */
const DROP = -1;

/**
 * The chains of a table as the kernel gave it out. One is read when a walk comes to it, by way of a jump: of the hundred
 * thousand rules of 10,000 Services those are a few dozen.
 */
export class KernelChains implements LegacyChains {
  readonly #table: LegacyTable;
  readonly #context: BlobContext;
  readonly #printRules: (chain: string) => readonly string[] | undefined;
  readonly #chains = new Map<string, LegacyChain>();
  /** Offsets of the first rules, of the chains that rules read so far jump to. */
  readonly #starts = new Map<string, number>();

  /**
   * @param printRules the rules of a chain as the program prints them, for what is not known here of an extension; undefined when
   * there is no such program
   */
  constructor(table: LegacyTable, context: BlobContext, printRules: (chain: string) => readonly string[] | undefined) {
    this.#table = table;
    this.#context = context;
    this.#printRules = printRules;
  }

  /** A chain that is built in, or that some rule of a chain read before jumps to. */
  get(name: string): LegacyChain | undefined {
    const chain = this.#chains.get(name) ?? this.#read(name);
    if (chain) this.#chains.set(name, chain);
    return chain;
  }

  #read(name: string): LegacyChain | undefined {
    const builtIn = this.#table.builtIn[BUILT_IN.indexOf(name)];
    if (builtIn) {
      const isDrop = this.#table.entry(builtIn.policy)?.target.info.readInt32LE(0) === DROP;
      const rules = this.#rules(name, this.#entries(builtIn.first, builtIn.policy));
      return { builtIn: true, ...(isDrop && { policy: 'DROP' }), rules };
    }
    const first = this.#starts.get(name);
    if (first === undefined) return undefined;
    // The last one is no rule: it returns.
    return { builtIn: false, rules: this.#rules(name, this.#entries(first).slice(0, -1)) };
  }

  /** @param end offset behind the last. @default what is in front of the next chain */
  #entries(first: number, end = Number.POSITIVE_INFINITY): LegacyEntry[] {
    const entries: LegacyEntry[] = [];
    for (let at = first; at < end; ) {
      const entry = this.#table.entry(at);
      if (!entry || isChainHead(entry)) break;
      entries.push(entry);
      at = entry.next;
    }
    return entries;
  }

  #rules(name: string, entries: readonly LegacyEntry[]): readonly (string | ParsedRule)[] {
    const context = { ...this.#context, chainAt: (first: number) => this.#chainAt(first) };
    const decoded = entries.map((entry) => decodeEntry(entry, context));
    const rules = decoded.map(({ rule }) => rule);
    if (decoded.every(({ isWhole }) => isWhole)) return rules;
    const printed = this.#printRules(name);
    // Of another length: somebody changed the chain between the two looks at it.
    return printed?.length === rules.length ? printed : rules;
  }

  #chainAt(first: number): string | undefined {
    const name = this.#table.chainAt(first);
    if (name !== undefined) this.#starts.set(name, first);
    return name;
  }
}
