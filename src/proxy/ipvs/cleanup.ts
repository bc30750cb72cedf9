import { type Cidr, type IpFamily, inSlices, type Removals } from '../../core/index.ts';
import type { IptablesTool } from '../rules/index.ts';
import type { Operation } from './diff/operations.ts';
import type { IpvsKernel } from './kernel/kernel.ts';
import { readState } from './kernel/read-state.ts';
import { removeRules } from './kernel/rules-state.ts';

/** What a dry run calls the rules of a variant and family. */
export function placeOf({ variant }: IptablesTool, family: IpFamily): string {
  return `iptables-${variant} ${family}`;
}

export interface IpvsCleanupOptions {
  /** Of the family and variant to clean up. */
  readonly tool: IptablesTool;
  /** Of the same family; undefined when the kernel has no IPVS: then only rules can be there. */
  readonly kernel: IpvsKernel | undefined;
  /** What is in these ranges stays unless we made it. @default none */
  readonly excludeCidrs?: readonly Cidr[];
  /** Keys of virtual servers this process made. @default those the kernel's sets know */
  readonly made?: ReadonlySet<string>;
  /** Hears of what goes, and says whether to do it. @default everything */
  readonly removals?: { readonly family: IpFamily; readonly note: Removals } | undefined;
}

/**
 * Removes what is ours or a kube-proxy's in IPVS mode, of one family: rules, virtual servers, kube-ipvs0 and the ipsets.
 * Foreign virtual servers stay. Chains shared with a proxy in iptables mode stay while that one is in force. Connections
 * through virtual servers end.
 *
 * @throws ERR_IPTABLES; KernelError for what the kernel refuses
 */
export async function cleanupIpvs(options: IpvsCleanupOptions): Promise<void> {
  const { tool, kernel, excludeCidrs = [], made = new Set(), removals } = options;
  await removeRules(tool, { noted: removals && { place: placeOf(tool, removals.family), removals: removals.note } });
  if (!kernel) return;
  const state = await inSlices(readState(kernel, { excludeCidrs, made }));
  if (removals) {
    const servers = [...state.servers.keys()].map((key) => ({
      object: `IPVS ${removals.family}, virtual server ${key}`,
      why: 'in KUBE-IPVS-SERVERS, at an address of kube-ipvs0, or in a kube-proxy’s sets',
    }));
    const rest = kernel
      .removable()
      .map((object) => ({ object, why: 'a name that kube-proxy and nodeplane use alone' }));
    if (!removals.note.note(...servers, ...rest)) return;
  }
  const operations = [...state.servers.values()].map(
    ({ virtual }): Operation => ({ kind: 'deleteServer', key: virtual.key, owners: [] }),
  );
  const refusal = kernel.apply(operations).find((error) => error !== undefined && error.errnoName !== 'ESRCH');
  if (refusal) throw refusal;
  kernel.removeAll();
}
