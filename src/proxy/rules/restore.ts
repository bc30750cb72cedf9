import type { ChainDiff } from './chain-set.ts';

/** A rule in a chain that is not ours, such as the jump from PREROUTING. */
export interface ForeignRule {
  readonly chain: string;
  readonly rule: string;
}

/** What one iptables-restore does to one table. */
export interface TableRestore extends ChainDiff {
  readonly table: string;
  /** Rules put at the head of built-in chains, one after the other: the last ends up first. */
  readonly insert: readonly ForeignRule[];
  /** Rules taken out of chains that are not ours. */
  readonly withdraw: readonly ForeignRule[];
}

/** What a line of the restore text is about. */
export interface LineOrigin {
  readonly line: string;
  readonly table: string;
  readonly owner: string | undefined;
}

/** The input of `iptables-restore --noflush`, and for each of its lines (from 0) where it comes from. */
export interface RestoreText {
  readonly text: string;
  readonly origins: readonly LineOrigin[];
}

/**
 * Writes the input of iptables-restore for some tables, in the order given. Each table is one transaction in the kernel.
 *
 * Declaring a chain empties it, also those that go, so that when the deletions come nothing refers to them any more,
 * whatever their order: the rules in built-in chains are withdrawn before, and the chains that stay are rewritten.
 */
export function writeRestore(tables: readonly TableRestore[]): RestoreText {
  const origins: LineOrigin[] = [];
  for (const { table, write, remove, insert, withdraw } of tables) {
    const add = (line: string, owner?: string) => origins.push({ line, table, owner });
    add(`*${table}`);
    for (const [name, chain] of write) add(`:${name} - [0:0]`, chain.owner);
    for (const name of remove) add(`:${name} - [0:0]`);
    for (const { chain, rule } of withdraw) add(`-D ${chain} ${rule}`);
    for (const [name, chain] of write) {
      for (const rule of chain.rules) add(`-A ${name} ${rule}`, chain.owner);
    }
    for (const { chain, rule } of insert) add(`-I ${chain} ${rule}`);
    for (const name of remove) add(`-X ${name}`);
    add('COMMIT');
  }
  return { text: origins.map(({ line }) => `${line}\n`).join(''), origins };
}

/** The line iptables-restore complains about (`line 7 failed`, `Error occurred at line: 7`), if it names one. */
export function failedLine(stderr: string, restore: RestoreText): LineOrigin | undefined {
  const match = /\bline:? (\d+)/.exec(stderr);
  return match ? restore.origins[Number(match[1]) - 1] : undefined;
}
