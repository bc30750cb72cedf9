import type {
  NftChain,
  NftChange,
  NftCounter,
  NftElement,
  NftRule,
  NftSet,
  NftTable,
} from '../../src/netlink/nftables/index.ts';
import {
  baseText,
  changeText,
  commentLines,
  elementTexts,
  KnownSets,
  ruleText,
  setBody,
  setWord,
} from '../../src/netlink/nftables/text/index.ts';

/**
 * A transaction as text that `nft -f` reads, one change a line: `add rule ip nodeplane services ip daddr … goto …`. What `nft`
 * cannot say is in brackets.
 *
 * @param known sets that are there already; those that the transaction makes are added
 */
export function changesText(changes: readonly NftChange[], known: KnownSets = new KnownSets()): string {
  return changes.map((change) => `${changeText(change, known)}\n`).join('');
}

/** A table with all that is in it. */
export interface TableContent {
  readonly table: NftTable;
  readonly counters?: readonly NftCounter[];
  readonly sets: readonly NftSet[];
  /** By set. */
  readonly elements: ReadonlyMap<string, readonly NftElement[]>;
  readonly chains: readonly NftChain[];
  /** In their order, by chain. */
  readonly rules: ReadonlyMap<string, readonly NftRule[]>;
}

/**
 * A table as `nft list table` prints it, but with one element a line, sorted: their order in the kernel is one of hashes.
 * Counters of rules go without what they counted.
 */
export function tableText(content: TableContent): string {
  const { table, counters = [], sets, elements, chains, rules } = content;
  const known = new KnownSets();
  for (const set of sets) known.note(set);
  const blocks: string[] = [];
  for (const { name, packets = 0n, bytes = 0n, comment } of counters) {
    blocks.push(block(`counter ${name}`, [...commentLines(comment), `packets ${packets} bytes ${bytes}`]));
  }
  for (const set of sets) {
    const texts = elementTexts(elements.get(set.name) ?? [], set).sort();
    const list = texts.length === 0 ? [] : [`elements = {\n\t\t\t${texts.join(',\n\t\t\t')} }`];
    blocks.push(block(`${setWord(set)} ${set.name}`, [...setBody(set), ...list]));
  }
  for (const { name, base, comment } of chains) {
    const lines = (rules.get(name) ?? []).map((rule) => ruleLine(rule, known));
    const begin = base ? [baseText(base, table.family)] : [];
    blocks.push(block(`chain ${name}`, [...commentLines(comment), ...begin, ...lines]));
  }
  const comment = commentLines(table.comment).map((line) => `\t${line}\n`);
  return `table ${table.family} ${table.name} {\n${comment.join('')}${blocks.join('\n')}}\n`;
}

function ruleLine({ expressions, family, table, comment }: NftRule, known: KnownSets): string {
  const parts = [ruleText(expressions, family, known.of(family, table)), ...commentLines(comment)];
  return parts.filter((part) => part !== '').join(' ');
}

function block(head: string, lines: readonly string[]): string {
  return `\t${head} {\n${lines.map((line) => `\t\t${line}\n`).join('')}\t}\n`;
}
