import type { Removal } from '../../core/index.ts';
import type { Chain, ChainDiff } from './chain-set.ts';

/** A rule in a chain that is not ours, such as the jump from PREROUTING. */
export interface ForeignRule {
  readonly chain: string;
  readonly rule: string;
}

/** What one iptables-restore does to one table. */
export interface TableRestore extends ChainDiff {
  readonly table: string;
  /** Rules put at the head of chains that are not ours, one after the other: the last ends up first. */
  readonly insert: readonly ForeignRule[];
  /** Rules taken out of chains that are not ours. */
  readonly withdraw: readonly ForeignRule[];
}

/** What a line of the restore text is about. */
export interface LineOrigin {
  readonly line: string;
  readonly table: string;
  /** The chain it declares, fills or deletes; undefined for the lines around them. */
  readonly chain: string | undefined;
  readonly owner: string | undefined;
}

/** Characters, of which the text has ASCII's only: a few milliseconds of work, and less than the program's pipe holds. */
const PIECE_LENGTH = 64 * 1024;

/**
 * Writes the input of `iptables-restore --noflush` for some tables, in the order given, piece by piece: all of it is tens of
 * MiB in a large cluster. Each table is one transaction in the kernel.
 *
 * Declaring a chain empties it, also those that go, so that when the deletions come nothing refers to them any more,
 * whatever their order: the rules in built-in chains are withdrawn before, and the chains that stay are rewritten.
 *
 * iptables-nft keeps the names of the chains it has met in an alphabetical list, and for each line walks it up to the line's chain
 * (cache_chain_list_insert of its nft-cache.c, 1.8.5 and later). The names come from the last to the first, each with its rules, so
 * that most lines find theirs at the head.
 */
export function* writeRestore(tables: readonly TableRestore[]): Iterable<string> {
  let piece = '';
  for (const table of tables) {
    for (const line of restoreLines(table)) {
      piece += `${line}\n`;
      if (piece.length < PIECE_LENGTH) continue;
      yield piece;
      piece = '';
    }
  }
  yield piece;
}

function* restoreLines({ table, write, remove, insert, withdraw }: TableRestore): Iterable<string> {
  yield `*${table}`;
  for (const { chain, rule } of withdraw) yield `-D ${chain} ${rule}`;
  for (const [name, { rules }] of inOrder(write)) {
    yield declare(name);
    const append = `-A ${name} `;
    for (const rule of rules) yield append + rule;
  }
  for (const name of fromTheLast(remove)) yield declare(name);
  for (const { chain, rule } of insert) yield `-I ${chain} ${rule}`;
  for (const name of remove) yield `-X ${name}`;
  yield 'COMMIT';
}

const declare = (name: string) => `:${name} - [0:0]`;
const fromTheLast = (names: Iterable<string>) => [...names].sort().reverse();

/** From the last name to the first, but for chains that rules lead to: those come before them. */
function* inOrder(chains: ReadonlyMap<string, Chain>): Iterable<readonly [string, Chain]> {
  const met = new Set<string>();
  let next: (readonly [string, Chain])[] = [];
  const visit = (name: string) => {
    const chain = chains.get(name);
    if (!chain || met.has(name)) return;
    met.add(name);
    for (const rule of chain.rules) {
      // One that leads to a chain ends with `-j` or `-g` and its name.
      const at = rule.lastIndexOf(' ');
      if (rule.startsWith('-j', at - 2) || rule.startsWith('-g', at - 2)) visit(rule.slice(at + 1));
    }
    next.push([name, chain]);
  };
  for (const name of fromTheLast(chains.keys())) {
    visit(name);
    yield* next;
    next = [];
  }
}

/** The line iptables-restore complains about (`line 7 failed`, `Error occurred at line: 7`), if it names one. */
export function failedLine(stderr: string, tables: readonly TableRestore[]): LineOrigin | undefined {
  let left = Number(/\bline:? (\d+)/.exec(stderr)?.[1]);
  for (const restore of tables) {
    for (const line of restoreLines(restore)) {
      left--;
      if (left !== 0) continue;
      const chain = /^(?::|-[ADIX] )(\S+)/.exec(line)?.[1];
      return { line, table: restore.table, chain, owner: chain && restore.write.get(chain)?.owner };
    }
  }
  return undefined;
}

/**
 * What a restore takes away, in words.
 *
 * @param place `iptables-nft IPv4`
 */
export function removalsOf(place: string, tables: readonly TableRestore[]): Removal[] {
  const why = 'a name of kube-proxy’s chains, which nodeplane uses too';
  return tables.flatMap(({ table, remove, write, withdraw }) => {
    const chainAt = (name: string) => `${place}, table ${table}, chain ${name}`;
    return [
      ...withdraw.map(({ chain, rule }) => ({
        object: `${chainAt(chain)}, rule "${rule}"`,
        why: 'kube-proxy’s jump, which nodeplane makes too',
      })),
      ...remove.map((name) => ({ object: chainAt(name), why })),
      ...[...write.keys()].map((name) => ({
        object: chainAt(name),
        why: `${why}; emptied, as a rule of others leads to it`,
        stays: true,
      })),
    ];
  });
}
