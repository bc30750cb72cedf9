import type { Removal } from '../../core/index.ts';
import type { ChainDiff } from './chain-set.ts';

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

/** The input of `iptables-restore --noflush`, and what it was made of. */
export interface RestoreText {
  readonly text: string;
  readonly tables: readonly TableRestore[];
}

/**
 * Writes the input of iptables-restore for some tables, in the order given. Each table is one transaction in the kernel.
 *
 * Declaring a chain empties it, also those that go, so that when the deletions come nothing refers to them any more,
 * whatever their order: the rules in built-in chains are withdrawn before, and the chains that stay are rewritten.
 */
export function writeRestore(tables: readonly TableRestore[]): RestoreText {
  // One string that grows: nothing else is kept for each line, of which a full load has a hundred thousand.
  let text = '';
  for (const { table, write, remove, insert, withdraw } of tables) {
    text += `*${table}\n`;
    for (const name of write.keys()) text += `:${name} - [0:0]\n`;
    for (const name of remove) text += `:${name} - [0:0]\n`;
    for (const { chain, rule } of withdraw) text += `-D ${chain} ${rule}\n`;
    for (const [name, { rules }] of write) {
      const append = `-A ${name} `;
      for (const rule of rules) text += `${append}${rule}\n`;
    }
    for (const { chain, rule } of insert) text += `-I ${chain} ${rule}\n`;
    for (const name of remove) text += `-X ${name}\n`;
    text += 'COMMIT\n';
  }
  return { text, tables };
}

/** The line iptables-restore complains about (`line 7 failed`, `Error occurred at line: 7`), if it names one. */
export function failedLine(stderr: string, restore: RestoreText): LineOrigin | undefined {
  const match = /\bline:? (\d+)/.exec(stderr);
  const lines = match ? restore.text.split('\n').slice(0, Number(match[1])) : [];
  const line = lines[Number(match?.[1]) - 1];
  const table = restore.tables[lines.filter((each) => each.startsWith('*')).length - 1];
  if (!line || !table) return undefined;
  const chain = /^(?::|-[ADIX] )(\S+)/.exec(line)?.[1];
  return { line, table: table.table, chain, owner: chain && table.write.get(chain)?.owner };
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
