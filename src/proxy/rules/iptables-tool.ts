import { type IpFamily, inSlices, NodeplaneError } from '../../core/index.ts';
import type { Exec } from '../../sys/index.ts';
import { failedLine, type RestoreText } from './restore.ts';
import { parseSave, type SavedTable } from './save.ts';

/** The two implementations of iptables: their rules live in different places of the kernel and all of them apply. */
export type IptablesVariant = 'legacy' | 'nft';

/** Loading tens of thousands of chains through iptables-nft takes minutes on a slow machine. */
const RESTORE_TIMEOUT_MS = 600_000;
/** How long the programs wait for the xtables lock, as kube-proxy has them do. */
const LOCK_WAIT_SECONDS = '5';

/** The iptables programs of one family and variant. */
export interface IptablesTool {
  readonly variant: IptablesVariant;
  /**
   * Runs `iptables-restore --noflush`. Throws ERR_IPTABLES; when the program named a line, the facts say `table`,
   * `chain`, the line as `rule`, and its `owner`. For what the kernel refuses, the legacy variant names COMMIT alone.
   */
  restore(restore: RestoreText): Promise<void>;
  /** One table; empty when the kernel has none yet. Throws ERR_IPTABLES. */
  save(table: string): Promise<SavedTable>;
  /** All tables the kernel has at the moment, without creating any. Throws ERR_IPTABLES. */
  saveAll(): Promise<ReadonlyMap<string, SavedTable>>;
}

export function iptablesTool(family: IpFamily, variant: IptablesVariant, exec: Exec): IptablesTool {
  const save = async (args: readonly string[]) => {
    const program = programName(family, variant, 'save');
    const result = await run(exec, program, args);
    if (result.status !== 0) throw failure(`${program} ${args.join(' ')}`.trim(), result);
    return inSlices(parseSave(result.stdout));
  };
  return {
    variant,
    async restore(restore) {
      const program = programName(family, variant, 'restore');
      const args = ['-w', LOCK_WAIT_SECONDS, '--noflush'];
      const result = await run(exec, program, args, restore.text);
      if (result.status !== 0) throw failure(program, result, restore);
    },
    save: async (table) => (await save(['-t', table])).get(table) ?? new Map(),
    saveAll: () => save([]),
  };
}

/** Whether this machine's programs and kernel do NAT for a family: kube-proxy's own test. */
export async function isIptablesPresent(family: IpFamily, variant: IptablesVariant, exec: Exec): Promise<boolean> {
  try {
    const args = ['-w', LOCK_WAIT_SECONDS, '-S', 'POSTROUTING', '-t', 'nat'];
    const result = await exec(programName(family, variant), args);
    return result.status === 0;
  } catch {
    return false;
  }
}

/** `iptables-legacy-restore`, `ip6tables-nft-save`, `ip6tables-nft`, `iptables`. */
export function programName(family: IpFamily, variant?: IptablesVariant, tool?: 'restore' | 'save'): string {
  return [family === 'IPv4' ? 'iptables' : 'ip6tables', variant, tool].filter(Boolean).join('-');
}

async function run(exec: Exec, program: string, args: readonly string[], input?: string) {
  try {
    return await exec(program, args, { ...(input !== undefined && { input }), timeoutMs: RESTORE_TIMEOUT_MS });
  } catch (cause) {
    const message = `Cannot run ${program} of the iptables package to its end`;
    throw new NodeplaneError('ERR_IPTABLES', message, { facts: { program }, cause });
  }
}

function failure(
  what: string,
  result: { readonly status: number; readonly stderr: string },
  restore?: RestoreText,
): NodeplaneError {
  const origin = restore && failedLine(result.stderr, restore);
  const said = result.stderr.trim().replace(/\s*\n\s*/g, '; ');
  const at = origin ? ` at "${origin.line}" of table ${origin.table}` : '';
  const owner = origin?.owner ? `, which belongs to ${origin.owner}` : '';
  return new NodeplaneError('ERR_IPTABLES', `${what} failed with status ${result.status}${at}${owner}: "${said}"`, {
    facts: {
      ...{ status: result.status, stderr: result.stderr },
      ...{ table: origin?.table, chain: origin?.chain, rule: origin?.line, owner: origin?.owner },
    },
  });
}
