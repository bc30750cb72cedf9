import { statSync } from 'node:fs';
import { errorText, type IpFamily, NodeplaneError } from '../../core/index.ts';
import { type Exec, type ExecOptions, type ExecResult, lockHolder } from '../../sys/index.ts';
import { failedLine, type TableRestore, writeRestore } from './restore.ts';
import { type KnownChains, type SavedTable, SaveReader } from './save.ts';
import { brokeOff, metUnreadable, saysLeftOut, UnreadableTableError } from './unreadable.ts';

/** The two implementations of iptables: their rules live in different places of the kernel and all of them apply. */
export type IptablesVariant = 'legacy' | 'nft';

/** Loading tens of thousands of chains through iptables-nft takes minutes on a slow machine. */
const RESTORE_TIMEOUT_MS = 600_000;
/** How long the programs wait for the xtables lock, as kube-proxy has them do. */
const LOCK_WAIT_SECONDS = '5';
/** What the programs end with when that was too short, and for other reasons too: iptables' RESOURCE_PROBLEM. */
const RESOURCE_PROBLEM = 4;
/** What both variants say for EPERM. */
const DENIED = '(you must be root)';

/**
 * The iptables programs of one family and variant.
 *
 * Every function throws ERR_IPTABLES_LOCK when somebody holds the xtables lock. Only the legacy variant has it: two writers
 * through nf_tables are kept apart by the kernel, and iptables-nft itself begins again when the other one was faster.
 */
export interface IptablesTool {
  readonly variant: IptablesVariant;
  /**
   * Runs `iptables-restore --noflush`. Throws ERR_IPTABLES; when the program named a line, the facts say `table`,
   * `chain`, the line as `rule`, and its `owner`. For what the kernel refuses, the legacy variant names COMMIT alone.
   */
  restore(tables: readonly TableRestore[]): Promise<void>;
  /**
   * One table; empty when the kernel has none yet. Throws ERR_IPTABLES, as UnreadableTableError where nft made what is in it.
   *
   * @param known what is probably in it (see `SaveReader`). @default nothing
   */
  save(table: string, known?: KnownChains): Promise<SavedTable>;
  /** All tables the kernel has at the moment and the program can list, without creating any. Throws as `save` does when it broke off. */
  saveAll(): Promise<ReadonlyMap<string, SavedTable>>;
}

/** The programs of one family and variant; they are not run before they are asked for something. */
export function iptablesTool(family: IpFamily, variant: IptablesVariant, exec: Exec): IptablesTool {
  const save = async (args: readonly string[], known?: KnownChains) => {
    const program = programName(family, variant, 'save');
    const [, table] = args;
    const reader = new SaveReader(known);
    let leftOut: string | undefined;
    const readLine = (line: string) => {
      reader.take(line);
      if (table !== undefined && saysLeftOut(line, table)) leftOut = line;
    };
    const result = await run(exec, program, args, { readLine });
    for (const line of result.stdout.split('\n')) readLine(line);
    const { tables, lastTable } = reader;
    if (brokeOff(result) && lastTable !== undefined) {
      tables.delete(lastTable);
      throw new UnreadableTableError(family, lastTable, oneLine(result.stderr), tables);
    }
    // Taken for an empty one, all of its rules would be written anew at each look.
    if (table !== undefined && leftOut !== undefined) throw new UnreadableTableError(family, table, oneLine(leftOut));
    if (result.status !== 0) throw failure(`${program} ${args.join(' ')}`.trim(), result);
    return tables;
  };
  return {
    variant,
    async restore(tables) {
      const program = programName(family, variant, 'restore');
      const args = ['-w', LOCK_WAIT_SECONDS, '--noflush'];
      const result = await run(exec, program, args, { input: writeRestore(tables) });
      if (result.status !== 0) throw failure(program, result, tables);
    },
    save: async (table, known) => (await save(['-t', table], known)).get(table) ?? new Map(),
    saveAll: () => save([]),
  };
}

/**
 * Looks whether this machine's programs and kernel do NAT for a family: kube-proxy's own test.
 *
 * @returns what is missing, in the program's own words; undefined when nothing is
 * @throws ERR_IPTABLES_LOCK when it cannot be told now
 */
export async function whyIptablesMissing(
  family: IpFamily,
  variant: IptablesVariant,
  exec: Exec,
): Promise<string | undefined> {
  const program = programName(family, variant);
  let result: ExecResult;
  try {
    result = await exec(program, ['-w', LOCK_WAIT_SECONDS, '-S', 'POSTROUTING', '-t', 'nat']);
  } catch (error) {
    return errorText(error);
  }
  if (result.status === 0) return undefined;
  if (isLockBusy(result)) throw lockBusy(program);
  if (metUnreadable(result)) return undefined;
  return `${program} -S POSTROUTING -t nat ended with status ${result.status}: "${oneLine(result.stderr)}"`;
}

/** `iptables-legacy-restore`, `ip6tables-nft-save`, `ip6tables-nft`, `iptables`. */
export function programName(family: IpFamily, variant?: IptablesVariant, tool?: 'restore' | 'save'): string {
  return [family === 'IPv4' ? 'iptables' : 'ip6tables', variant, tool].filter(Boolean).join('-');
}

async function run(exec: Exec, program: string, args: readonly string[], options: ExecOptions) {
  try {
    return await exec(program, args, { ...options, timeoutMs: RESTORE_TIMEOUT_MS });
  } catch (cause) {
    const message = `Cannot run ${program} of the iptables package to its end`;
    throw new NodeplaneError('ERR_IPTABLES', message, { facts: { program }, cause });
  }
}

function failure(what: string, result: ExecResult, tables: readonly TableRestore[] = []): NodeplaneError {
  if (isLockBusy(result)) return lockBusy(what);
  const origin = failedLine(result.stderr, tables);
  const said = oneLine(result.stderr);
  const at = origin ? ` at "${origin.line}" of table ${origin.table}` : '';
  const owner = origin?.owner ? `, which belongs to ${origin.owner}` : '';
  const remedy = said.includes(DENIED) ? '. It needs CAP_NET_ADMIN, iptables-legacy CAP_NET_RAW as well' : '';
  return new NodeplaneError(
    'ERR_IPTABLES',
    `${what} failed with status ${result.status}${at}${owner}: "${said}"${remedy}`,
    {
      facts: {
        status: result.status,
        stderr: result.stderr,
        table: origin?.table,
        chain: origin?.chain,
        rule: origin?.line,
        owner: origin?.owner,
      },
    },
  );
}

/** Whether a program may not look, for want of a capability. */
export function isDenied(error: unknown): boolean {
  return error instanceof NodeplaneError && String(error.facts.stderr).includes(DENIED);
}

/** iptables/xshared.c: `Another app is currently holding the xtables lock. Stopped waiting after 5s.` */
function isLockBusy({ status, stderr }: ExecResult): boolean {
  return status === RESOURCE_PROBLEM && stderr.includes('holding the xtables lock');
}

/** ERR_IPTABLES_LOCK: what waited for the lock in vain, and who holds it. */
function lockBusy(what: string): NodeplaneError {
  const path = process.env.XTABLES_LOCKFILE ?? '/run/xtables.lock';
  const file = statSync(path, { throwIfNoEntry: false });
  const holder = file && lockHolder(file);
  const who = holder
    ? `process ${holder.pid} (${holder.program ?? 'which has ended, but not all it started'})`
    : 'a process that cannot be seen from here';
  const message = `${what} waited ${LOCK_WAIT_SECONDS} s for the xtables lock "${path}", held by ${who}; it is tried again`;
  return new NodeplaneError('ERR_IPTABLES_LOCK', message, {
    facts: { path, holder: holder?.pid, holderProgram: holder?.program },
  });
}

function oneLine(stderr: string): string {
  return stderr.trim().replace(/\s*\n\s*/g, '; ');
}
