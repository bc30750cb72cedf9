import { errorText, type IpFamily, NodeplaneError } from '../../core/index.ts';
import type { Exec } from '../../sys/index.ts';
import { type IptablesVariant, iptablesTool, isDenied, programName } from './iptables-tool.ts';
import type { SavedTable } from './save.ts';
import { UnreadableTableError } from './unreadable.ts';

/** Which variant to use, and why. */
export interface DetectedVariant {
  readonly variant: IptablesVariant;
  /** For the log: `the kubelet’s hint chains are there`. */
  readonly reason: string;
  /** The other variant holds a proxy's chains too: they apply as well and should be cleaned up. */
  readonly otherHoldsServices: boolean;
  /** Of the other one nothing can be told, because its program may not look; in its words. Undefined: it could. */
  readonly otherDenied: string | undefined;
}

/** Chains the kubelet keeps in the mangle table so that others can tell which variant the node uses (KEP-3178). */
const KUBELET_HINTS = ['KUBE-IPTABLES-HINT', 'KUBE-KUBELET-CANARY'];
const VARIANTS: readonly IptablesVariant[] = ['nft', 'legacy'];

/**
 * Finds the variant of iptables the node uses for a family. In this order: `wanted`; where the kubelet's hint chains
 * are; where a service proxy's chains are; what the plain `iptables` program is.
 *
 * @throws ERR_IPTABLES when no usable program is there
 */
export async function detectVariant(
  family: IpFamily,
  exec: Exec,
  wanted?: IptablesVariant | undefined,
): Promise<DetectedVariant> {
  const tables = new Map<IptablesVariant, ReadonlyMap<string, SavedTable>>();
  const denied = new Map<IptablesVariant, string>();
  for (const variant of VARIANTS) {
    try {
      tables.set(variant, await iptablesTool(family, variant, exec).saveAll());
    } catch (error) {
      // It works, and tells what comes before the table that it cannot read. Otherwise: not installed, or not supported by the kernel.
      if (error instanceof UnreadableTableError) tables.set(variant, error.readable);
      else if (isDenied(error)) denied.set(variant, errorText(error));
    }
  }
  const available = VARIANTS.filter((variant) => tables.has(variant));
  const holds = (variant: IptablesVariant, table: string, chains: readonly string[]) =>
    chains.some((chain) => tables.get(variant)?.get(table)?.has(chain));
  const holdsServices = (variant: IptablesVariant) => holds(variant, 'nat', ['KUBE-SERVICES']);
  const choose = (variant: IptablesVariant, reason: string): DetectedVariant => ({
    variant,
    reason,
    otherHoldsServices: VARIANTS.some((other) => other !== variant && holdsServices(other)),
    otherDenied: VARIANTS.map((other) => (other === variant ? undefined : denied.get(other))).find(Boolean),
  });

  if (wanted) {
    if (tables.has(wanted)) return choose(wanted, 'it was asked for');
    const message = `Cannot use iptables variant "${wanted}": ${programName(family, wanted, 'save')} does not work here`;
    throw new NodeplaneError('ERR_IPTABLES', message, { facts: { family, variant: wanted } });
  }
  const hinted = available.find((variant) => holds(variant, 'mangle', KUBELET_HINTS));
  if (hinted) return choose(hinted, 'the kubelet’s hint chains are there');
  const serving = available.find(holdsServices);
  if (serving) return choose(serving, 'a service proxy’s chains are there');
  const standard = await standardVariant(family, exec);
  if (standard && available.includes(standard)) {
    return choose(standard, `${programName(family)} is this variant`);
  }
  const [first] = available;
  if (first) return choose(first, 'it is the only one that works');
  const message = `Cannot find a working ${programName(family)}: tried its nft and legacy variants; install iptables`;
  throw new NodeplaneError('ERR_IPTABLES', message, { facts: { family } });
}

/** What `iptables --version` says: `iptables v1.8.9 (nf_tables)`, or `(legacy)`, or nothing before 1.8. */
async function standardVariant(family: IpFamily, exec: Exec): Promise<IptablesVariant | undefined> {
  try {
    const { status, stdout } = await exec(programName(family), ['--version']);
    if (status !== 0) return undefined;
    return stdout.includes('(nf_tables)') ? 'nft' : 'legacy';
  } catch {
    return undefined;
  }
}
