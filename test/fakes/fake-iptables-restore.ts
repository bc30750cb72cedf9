import type { IptablesVariant } from '../../src/proxy/rules/index.ts';
import type { ExecResult } from '../../src/sys/index.ts';
import {
  additionName,
  applyLine,
  BUILT_IN_CHAINS,
  CommandRefused,
  copyTable,
  type FakeTable,
  hasLoop,
  newTable,
} from './fake-iptables-table.ts';

/** Who refuses a line: the program, which names it, or the kernel, for which the legacy variant names COMMIT alone. */
export type RefusedBy = 'program' | 'kernel';

/** What one iptables-restore is about. */
export interface FakeRestore {
  /** `iptables-legacy-restore` */
  readonly program: string;
  readonly variant: IptablesVariant;
  readonly text: string;
  /** `--noflush` was given. */
  readonly noflush: boolean;
  /** The tables there are, by name; each that is committed replaces its own. */
  readonly tables: Map<string, FakeTable>;
  /** Refuses lines a real one would take. */
  readonly refuse: (line: string) => RefusedBy | undefined;
}

/** A line of the input, counted from 1. */
interface Line {
  readonly number: number;
  readonly text: string;
}

/**
 * What iptables-restore does with its input: tables one after the other, each all or nothing. What was committed before a
 * table that fails stays.
 *
 * The legacy program does each line when it reads it and gives the kernel the whole table at COMMIT. iptables-nft reads the
 * whole table, does its lines at COMMIT, and sends them to the kernel one by one, which names all it refuses.
 */
export function applyRestore(restore: FakeRestore): ExecResult {
  const lines = restore.text.split('\n').map((text, index): Line => ({ number: index + 1, text }));
  let table: { name: string; lines: Line[] } | undefined;
  for (const line of lines) {
    if (line.text === '' || line.text.startsWith('#')) continue;
    try {
      if (line.text.startsWith('*') && !table) {
        const name = line.text.slice(1);
        if (!BUILT_IN_CHAINS[name]) throw new CommandRefused(2, `table '${name}' is unknown`);
        table = { name, lines: [] };
      } else if (!table) {
        throw new CommandRefused(1, '');
      } else if (line.text === 'COMMIT') {
        doTable(restore, table.name, table.lines, line);
        table = undefined;
      } else {
        table.lines.push(line);
      }
    } catch (error) {
      if (!(error instanceof CommandRefused)) throw error;
      return failure(restore, error, error.line ?? line.number);
    }
  }
  try {
    if (!table) return { status: 0, stdout: '', stderr: '' };
    doTable(restore, table.name, table.lines, undefined);
  } catch (error) {
    if (!(error instanceof CommandRefused)) throw error;
    return failure(restore, error, error.line ?? lines.length);
  }
  return { status: 1, stdout: '', stderr: `${ownName(restore)}: COMMIT expected at line ${lines.length}\n` };
}

/**
 * Does the lines of one table, and has the kernel take it.
 *
 * @param end COMMIT; undefined when the input ends before
 */
function doTable(restore: FakeRestore, name: string, lines: readonly Line[], end: Line | undefined): void {
  const { variant, noflush, tables, refuse } = restore;
  const before = noflush ? tables.get(name) : undefined;
  const table = before ? copyTable(before) : newTable(name);
  const refusedByProgram = (line: Line) => {
    const { number, text } = line;
    if (text.startsWith('*') || refuse(text) === 'program') throw new CommandRefused(2, 'Bad argument', number);
  };
  if (variant === 'nft') for (const line of lines) refusedByProgram(line);
  if (variant === 'nft' && !end) return;
  const sent = new Set(variant === 'nft' ? lines.filter((line, index) => !isFlushed(line, lines.slice(index))) : lines);
  const kernel: string[] = [];
  for (const line of lines) {
    if (variant === 'legacy') refusedByProgram(line);
    const addition = additionName(table, line.text);
    try {
      applyLine(table, line.text, variant, (message) => {
        if (variant === 'legacy') throw new CommandRefused(1, message);
        if (sent.has(line)) kernel.push(`line ${line.number}: ${message}`);
      });
    } catch (error) {
      if (!(error instanceof CommandRefused)) throw error;
      // iptables-nft looks for targets at the end of the table, and says so.
      const told = variant === 'nft' && error.status === 2 ? end : line;
      throw new CommandRefused(error.status, error.message, told?.number);
    }
    if (variant === 'nft' && sent.has(line) && refuse(line.text) === 'kernel') {
      kernel.push(refusedRule(line, addition, 'Invalid argument'));
    }
  }
  if (!end) return;
  // The legacy program hands the kernel the whole table as it is then.
  if (variant === 'legacy' && rulesOf(table).some((line) => refuse(line) === 'kernel')) {
    throw new CommandRefused(1, '', end.number);
  }
  if (kernel.length === 0 && hasLoop(table)) {
    kernel.push(...loops(before ? copyTable(before) : newTable(name), [...sent]));
  }
  if (kernel.length > 0) {
    if (variant === 'legacy') throw new CommandRefused(1, '', end.number);
    throw new CommandRefused(4, `\n${kernel.join('\n')}`);
  }
  tables.set(name, table);
}

/** iptables-nft does not send what it is to do with the rules of a chain that it is to flush later in the same table. */
function isFlushed({ text }: Line, later: readonly Line[]): boolean {
  const [, chain] = /^-[AID] (\S+)/.exec(text) ?? [];
  return chain !== undefined && later.some((line) => line.text === `-F ${chain}`);
}

/** nf_tables looks for loops at the end; when there is one, it begins again and looks after each rule (`NFT_VALIDATE_DO`). */
function loops(table: FakeTable, lines: readonly Line[]): string[] {
  return lines.flatMap((line) => {
    const addition = additionName(table, line.text);
    applyLine(table, line.text, 'nft', () => {});
    return /^-[AI] /.test(line.text) && hasLoop(table) ? [refusedRule(line, addition, 'Too many links')] : [];
  });
}

function refusedRule({ number, text }: Line, addition: string, why: string): string {
  return `line ${number}: ${addition} failed (${why}): rule in chain ${text.split(' ')[1]}`;
}

function rulesOf(table: FakeTable): string[] {
  return [...table].flatMap(([name, { rules }]) => rules.map((rule) => `-A ${name} ${rule}`));
}

/** The legacy program leaves its variant out when it speaks of itself. */
function ownName({ program, variant }: FakeRestore): string {
  return variant === 'legacy' ? program.replace('-legacy', '') : program;
}

function failure(restore: FakeRestore, { status, message }: CommandRefused, line: number): ExecResult {
  const { variant } = restore;
  const name = ownName(restore);
  const version = `${name} v1.8.9 (${variant === 'nft' ? 'nf_tables' : 'legacy'})`;
  const stderr: Record<number, string> = {
    1: `${name}: line ${line} failed${variant === 'nft' && message !== '' ? `: ${message}` : ''}\n`,
    2: `${version}: ${message}\nError occurred at line: ${line}\nTry \`${name} -h' or '${name} --help' for more information.\n`,
    4: `${version}: ${message}\n`,
  };
  return { status, stdout: '', stderr: stderr[status]! };
}
