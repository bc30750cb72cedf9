import { type IpFamily, NodeplaneError } from '../../core/index.ts';
import type { ExecResult } from '../../sys/index.ts';
import type { SavedTable } from './save.ts';

/** How iptables-nft tells of a table that it leaves out of a listing, with status 0. */
const LEFT_OUT = "' is incompatible, use 'nft' tool";
/** And of one in the middle of which it gave up. */
const GAVE_UP = 'Parsing nftables rule failed';

/** A table of nf_tables holds what iptables-nft has no words for: nothing of it can be told, and nothing of it be mended. */
export class UnreadableTableError extends NodeplaneError {
  /** The tables that could be read, by name. */
  readonly readable: ReadonlyMap<string, SavedTable>;

  /** @param said by the program */
  constructor(family: IpFamily, table: string, said: string, readable: ReadonlyMap<string, SavedTable> = new Map()) {
    const nftFamily = family === 'IPv4' ? 'ip' : 'ip6';
    const message =
      `Table ${table} of iptables-nft (${family}) cannot be read: something made with nft is in it that iptables has no words for. ` +
      `"nft list table ${nftFamily} ${table}" shows it; have its program use a table of another name. The rules that are there stay in force ("${said}")`;
    super('ERR_IPTABLES', message, { facts: { family, table, unreadable: true } });
    this.readable = readable;
  }
}

/** Whether a line of a listing says that it leaves out `table`. */
export function saysLeftOut(line: string, table: string): boolean {
  return line.startsWith(`# Table \`${table}${LEFT_OUT}`);
}

/** Whether a listing broke off in the middle of a table; otherwise it failed, if at all, for another reason. */
export function brokeOff({ status, stderr }: ExecResult): boolean {
  return status !== 0 && stderr.includes(GAVE_UP);
}

/** Whether a program that failed works, and met rules that it cannot read. */
export function metUnreadable({ status, stderr }: ExecResult): boolean {
  return status !== 0 && (stderr.includes(GAVE_UP) || stderr.includes(LEFT_OUT));
}
