import type { IpFamily } from '../../src/core/index.ts';
import type { IptablesVariant } from '../../src/proxy/rules/index.ts';
import type { Exec, ExecResult } from '../../src/sys/index.ts';
import { inputText } from './exec-input.ts';
import { applyRestore, type RefusedBy } from './fake-iptables-restore.ts';
import { BUILT_IN_CHAINS, type FakeTable, newTable, printTable } from './fake-iptables-table.ts';

/** How to make a FakeIptables. */
export interface FakeIptablesOptions {
  /** What the programs without a variant in their names are. @default 'nft' */
  readonly standard?: IptablesVariant;
}

/** Whose tables: the two variants keep their rules apart, and so do the families. */
type FamilyAndVariant = `${IpFamily} ${IptablesVariant}`;

/**
 * The iptables programs and their tables in memory: iptables, -save and -restore, of both families, with `-nft`, `-legacy`
 * or neither in the name. It takes and refuses what iptables 1.8.9 does (`test/lab/iptables/fake.test.ts` holds it to that)
 * and counts what it was asked. What rules do to packets is not its business, nor are counters. Rules are kept as the
 * text given, so they are to be written as iptables-save prints them.
 *
 * @example
 * const iptables = new FakeIptables();
 * iptables.refuse = (line) => (line.includes('10.244.9.9') ? 'kernel' : undefined);
 * const dataplane = new IptablesDataplane({ family: 'IPv4', variant: 'nft', exec: iptables.exec });
 */
export class FakeIptables {
  /** Every program run, with its arguments: `iptables-nft-save -t nat`. */
  readonly calls: string[] = [];
  /** The input of every iptables-restore, the refused ones too. */
  readonly restores: string[] = [];
  /** Refuses lines a real one would take. */
  refuse: (line: string) => RefusedBy | undefined = () => undefined;
  /** Gives the outcome of a command (as in `calls`) instead of running it; may throw, as for a program that is not there. */
  instead: (command: string) => Pick<ExecResult, 'status' | 'stderr'> | undefined = () => undefined;
  /** Somebody holds the xtables lock, which the legacy programs wait for, and give up; iptables-save does not ask for it. */
  locked = false;
  /** Awaited before a program does anything: makes it slow. */
  delay: (command: string) => Promise<void> = async () => {};
  readonly #standard: IptablesVariant;
  readonly #state = new Map<FamilyAndVariant, Map<string, FakeTable>>();

  constructor({ standard = 'nft' }: FakeIptablesOptions = {}) {
    this.#standard = standard;
  }

  /** Runs one of the programs. */
  readonly exec: Exec = async (program, args, options) => {
    const command = [program, ...args].join(' ');
    const [, six, named, tool] = /^ip(6?)tables(?:-(nft|legacy))?(?:-(save|restore))?$/.exec(program) ?? [];
    if (six === undefined) throw new Error(`The fake iptables does not know ${program}`);
    const variant = (named as IptablesVariant | undefined) ?? this.#standard;
    const tables = this.#tables(`${six === '' ? 'IPv4' : 'IPv6'} ${variant}`);
    const text = inputText(options);
    this.calls.push(command);
    if (tool === 'restore') this.restores.push(text);
    await this.delay(command);
    const outcome = this.instead(command);
    if (outcome) return { ...outcome, stdout: '' };
    if (this.locked && variant === 'legacy' && tool !== 'save' && args[0] !== '--version') return LOCK_HELD;
    if (tool === 'save') return save(tables, args, variant);
    if (tool !== 'restore') return list(tables, args, program, variant);
    return applyRestore({ program, variant, text, noflush: args.includes('--noflush'), tables, refuse: this.refuse });
  };

  /** Runs `iptables-restore --noflush` as another process does: it is neither counted nor refused on purpose. */
  restoreAsOther(family: IpFamily, variant: IptablesVariant, text: string): void {
    const tables = this.#tables(`${family} ${variant}`);
    const result = applyRestore({
      program: 'iptables-restore',
      variant,
      text,
      noflush: true,
      tables,
      refuse: () => undefined,
    });
    if (result.status !== 0) throw new Error(result.stderr);
  }

  /** What iptables-save prints, of all tables there are. */
  dump(family: IpFamily = 'IPv4', variant: IptablesVariant = this.#standard): string {
    return printTables(this.#tables(`${family} ${variant}`));
  }

  #tables(of: FamilyAndVariant): Map<string, FakeTable> {
    const tables = this.#state.get(of) ?? new Map();
    this.#state.set(of, tables);
    return tables;
  }
}

const LOCK_HELD: ExecResult = {
  status: 4,
  stdout: '',
  stderr: `Can't lock /run/xtables.lock: Resource temporarily unavailable
Another app is currently holding the xtables lock. Stopped waiting after 5s.
`,
};

/** Asked for one table, the legacy variant makes it, and the other one prints it as if it were there. */
function save(tables: Map<string, FakeTable>, args: readonly string[], variant: IptablesVariant): ExecResult {
  const [option, name] = args;
  if (option === undefined) return done(printTables(tables));
  if (option !== '-t' || !name) throw new Error(`The fake iptables-save does not know "${args.join(' ')}"`);
  if (!BUILT_IN_CHAINS[name]) return { status: 1, stdout: '', stderr: `Table \`${name}' does not exist\n` };
  const table = tables.get(name) ?? newTable(name);
  if (variant === 'legacy') tables.set(name, table);
  return done(printTable(name, table));
}

/** `--version`, or `-S CHAIN -t TABLE`. */
function list(
  tables: Map<string, FakeTable>,
  args: readonly string[],
  program: string,
  variant: IptablesVariant,
): ExecResult {
  if (args[0] === '--version') return done(`${program} v1.8.9 (${variant === 'nft' ? 'nf_tables' : 'legacy'})\n`);
  const [, chain, table] = /-S (\S+) -t (\S+)$/.exec(args.join(' ')) ?? [];
  if (!chain || !table) throw new Error(`The fake ${program} does not know "${args.join(' ')}"`);
  const listed = (tables.get(table) ?? newTable(table)).get(chain);
  if (!listed) return { status: 1, stdout: '', stderr: `${program}: No chain/target/match by that name.\n` };
  const head = listed.policy === undefined ? `-N ${chain}` : `-P ${chain} ${listed.policy}`;
  return done([head, ...listed.rules.map((rule) => `-A ${chain} ${rule}`), ''].join('\n'));
}

function printTables(tables: ReadonlyMap<string, FakeTable>): string {
  return Object.keys(BUILT_IN_CHAINS)
    .flatMap((name) => (tables.has(name) ? printTable(name, tables.get(name)!) : []))
    .join('');
}

function done(stdout: string): ExecResult {
  return { status: 0, stdout, stderr: '' };
}
