import { formatIp, parseIp, type Steps } from '../../core/index.ts';

/** A chain as iptables-save prints it. */
export interface SavedChain {
  readonly builtIn: boolean;
  /** What becomes of packets that no rule decides, if not ACCEPT; built-in chains only. @default ACCEPT */
  readonly policy?: string;
  /** Without `-A CHAIN`, in order. */
  readonly rules: readonly string[];
}

/** One table: its chains by name, in the order printed. */
export type SavedTable = ReadonlyMap<string, SavedChain>;

/** Chains by name whose rules are known as text. */
export type KnownChains = ReadonlyMap<string, { readonly rules: readonly string[] }>;

/**
 * Takes in what iptables-save prints (man 8 iptables-save), line by line. Counters, comments and whatever else it may print are
 * passed over.
 */
export class SaveReader {
  /** Table name -> chains. */
  readonly tables = new Map<string, SavedTable>();
  readonly #known: KnownChains;
  #chains = new Map<string, { builtIn: boolean; policy?: string; rules: string[] }>();

  /**
   * @param known what is probably printed, in one table: rules that are equal are the same text, so that reading back what was
   *   written takes no memory for them. @default nothing
   */
  constructor(known: KnownChains = new Map()) {
    this.#known = known;
  }

  /** The table that was begun last, by name. */
  get lastTable(): string | undefined {
    return [...this.tables.keys()].at(-1);
  }

  take(line: string): void {
    if (line.startsWith('*')) {
      this.#chains = new Map();
      this.tables.set(ownText(line.slice(1).trim()), this.#chains);
    } else if (line.startsWith(':')) {
      const [name, policy] = line.slice(1).split(' ');
      const refuses = policy !== '-' && policy !== 'ACCEPT' && policy !== undefined;
      this.#chains.set(ownText(name!), { builtIn: policy !== '-', ...(refuses && { policy }), rules: [] });
    } else if (line.startsWith('-A ')) {
      const end = line.indexOf(' ', 3);
      const name = end < 0 ? line.slice(3) : line.slice(3, end);
      const rules = this.#chains.get(name)?.rules;
      if (!rules) return;
      const rule = end < 0 ? '' : plainRule(line.slice(end + 1));
      const known = this.#known.get(name)?.rules[rules.length];
      rules.push(known === rule ? known : rule);
    }
  }
}

/** Reads the output of iptables-save: table name -> chains. */
export function* parseSave(text: string): Steps<ReadonlyMap<string, SavedTable>> {
  const reader = new SaveReader();
  // Line by line, not split: a hundred thousand lines at once would keep the event loop waiting.
  for (let start = 0, newline = 0; start <= text.length; start = newline + 1) {
    newline = text.indexOf('\n', start);
    if (newline < 0) newline = text.length;
    reader.take(text.slice(start, newline));
    yield;
  }
  return reader.tables;
}

/** V8 keeps all of a text for a part of it; a copy keeps nothing. */
function ownText(part: string): string {
  return Buffer.from(part).toString();
}

/** Reads what `iptables -t TABLE -S CHAIN` prints: the chain's rules as `parseSave` has them. */
export function* parseList(table: string, chain: string, text: string): Steps<readonly string[]> {
  const tables = yield* parseSave(`*${table}\n:${chain} -\n${text}`);
  return tables.get(table)!.get(chain)!.rules;
}

/** The rule without what depends on the version of iptables and its C library. */
function plainRule(rule: string): string {
  // iptables 1.8 prints this option with two blanks behind it.
  const plain = rule.replace('--nfacct-name  ', '--nfacct-name ');
  if (!plain.includes(' ::')) return plain;
  // glibc prints an IPv6 address that begins with 96 zero bits as if it ended in an IPv4 one, musl does not.
  return plain.replace(/(?<=[ /])::\d+\.\d+\.\d+\.\d+/g, (address) => formatIp(parseIp(address)));
}

/** The chain a rule jumps or goes to (or its target, such as ACCEPT). */
export function targetOf(rule: string): string | undefined {
  // The target follows all matches; a quoted comment before it may hold anything.
  return /(?:^| )-[jg] ([^\s"]+)(?: [^"]*)?$/.exec(rule)?.[1];
}
