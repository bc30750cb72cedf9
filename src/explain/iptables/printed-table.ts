import { atOnce } from '../../core/index.ts';
import { parseList, type SavedTable } from '../../proxy/rules/index.ts';
import type { Saved } from './legacy-rules.ts';

/**
 * The tables in what iptables-save prints. A chain is read when somebody asks for it: a walk comes to a dozen, and to read the
 * 100,000 rules of 10,000 Services takes longer than to print them.
 */
export function printedTables(text: string): Saved {
  const tables = new Map<string, Pick<SavedTable, 'get'>>();
  // `*nat`, lines of chains, lines of rules, `COMMIT`.
  for (let start = lineWith(text, '*', 0); start >= 0; ) {
    const end = lineWith(text, 'COMMIT', start);
    const table = text.slice(start, end < 0 ? text.length : end);
    const name = table.slice(1, table.indexOf('\n')).trim();
    tables.set(name, readWhenAsked(name, table));
    start = end < 0 ? -1 : lineWith(text, '*', end);
  }
  return tables;
}

function readWhenAsked(table: string, text: string): Pick<SavedTable, 'get'> {
  const known = new Map<string, ReturnType<SavedTable['get']>>();
  return {
    get(chain) {
      if (!known.has(chain)) known.set(chain, readChain(table, chain, text));
      return known.get(chain);
    },
  };
}

/** `:NAME POLICY [packets:bytes]`, with `-` for the policy of a chain that is not built in. */
function readChain(table: string, name: string, text: string): ReturnType<SavedTable['get']> {
  const at = lineWith(text, `:${name} `, 0);
  if (at < 0) return undefined;
  const [, policy = '-'] = text.slice(at, endOfLine(text, at)).split(' ');
  return {
    builtIn: policy !== '-',
    ...(policy !== '-' && policy !== 'ACCEPT' && { policy }),
    rules: atOnce(parseList(table, name, rulesOf(text, name, at))),
  };
}

/** The lines of a chain's rules, which lie together. A rule that does nothing at all is its chain's name alone. */
function rulesOf(text: string, chain: string, from: number): string {
  const line = `-A ${chain}`;
  const isOfChain = (at: number) => text.startsWith(line, at) && /[ \n]/.test(text.charAt(at + line.length));
  let start = lineWith(text, line, from);
  while (start >= 0 && !isOfChain(start)) start = lineWith(text, line, start + 1);
  if (start < 0) return '';
  let end = start;
  while (isOfChain(end)) end = endOfLine(text, end) + 1;
  return text.slice(start, end);
}

/** Where the first line begins that begins so; -1: there is none. */
function lineWith(text: string, begin: string, from: number): number {
  if (from === 0 && text.startsWith(begin)) return 0;
  const newline = text.indexOf(`\n${begin}`, Math.max(0, from - 1));
  return newline < 0 ? -1 : newline + 1;
}

function endOfLine(text: string, from: number): number {
  const newline = text.indexOf('\n', from);
  return newline < 0 ? text.length : newline;
}
