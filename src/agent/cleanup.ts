import { errorText, type IpFamily, NodeplaneError } from '../core/index.ts';
import { IptablesDataplane } from '../proxy/iptables/index.ts';
import { type IptablesVariant, iptablesTool } from '../proxy/rules/index.ts';
import { type Exec, exec as runProgram } from '../sys/index.ts';

const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];
const VARIANTS: readonly IptablesVariant[] = ['nft', 'legacy'];

/**
 * Removes every rule of nodeplane and kube-proxy, in both families and both variants of iptables. Goes on after a
 * failure, so that as much as possible is gone.
 *
 * @returns one sentence for each place looked at
 * @throws ERR_IPTABLES naming every place that could not be cleaned
 */
export async function cleanup(exec: Exec = runProgram): Promise<string[]> {
  const done: string[] = [];
  const failed: string[] = [];
  for (const family of FAMILIES) {
    for (const variant of VARIANTS) {
      const place = `iptables-${variant} ${family}`;
      if (!(await isUsable(family, variant, exec))) {
        done.push(`${place}: not usable on this machine, so there is nothing to remove`);
        continue;
      }
      try {
        await new IptablesDataplane({ family, variant, exec }).cleanup();
        done.push(`${place}: clean`);
      } catch (error) {
        failed.push(`${place}: ${errorText(error)}`);
      }
    }
  }
  if (failed.length > 0) {
    throw new NodeplaneError('ERR_IPTABLES', `Cannot remove all rules: ${failed.join('; ')}`);
  }
  return done;
}

/** Listing shows it without loading the variant's tables into the kernel, as any other request would. */
async function isUsable(family: IpFamily, variant: IptablesVariant, exec: Exec): Promise<boolean> {
  try {
    await iptablesTool(family, variant, exec).saveAll();
    return true;
  } catch {
    return false;
  }
}
