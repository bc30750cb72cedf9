import { errorText, type IpFamily, NodeplaneError, type Removals } from '../core/index.ts';
import { closing } from '../netlink/index.ts';
import { Nftables } from '../netlink/nftables/index.ts';
import { needNetAdmin } from '../preflight/index.ts';
import type { Trace } from '../proxy/index.ts';
import { localhostTrace } from '../proxy/localhost/index.ts';
import { bothVariants, isUsable } from '../proxy/rules/index.ts';
import { exec } from '../sys/index.ts';
import { MODES } from './services/modes/modes.ts';

const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

/**
 * The way back to kube-proxy, once it has made its rules: removes what is nodeplane's and kube-proxy does not know, and so would
 * stay for ever. A family in which there are no rules of a kube-proxy is left as it is, because Services would stop there.
 *
 * @param removals hears of each thing, and says whether to do it. @default everything
 * @returns one sentence for each place looked at
 * @throws ERR_CONFIG without CAP_NET_ADMIN; ERR_CLEANUP when kube-proxy has rules in no family, or naming every place that could not be cleaned
 */
export async function leaveToKubeProxy(removals?: Removals): Promise<string[]> {
  needNetAdmin();
  const done: string[] = [];
  const failed: string[] = [];
  let served = 0;
  for (const family of FAMILIES) {
    if (!(await hasKubeProxyRules(family))) {
      done.push(`${family}: kube-proxy has no rules, so what is there stays`);
      continue;
    }
    served++;
    for (const trace of tracesOf(family)) {
      if (!trace.cleanOwn || !(await trace.isUsable())) continue;
      try {
        await trace.cleanOwn(removals);
        done.push(`${trace.name}: nothing is left that kube-proxy does not know`);
      } catch (error) {
        failed.push(`${trace.name}: ${errorText(error)}`);
      }
    }
  }
  if (served === 0) {
    throw new NodeplaneError(
      'ERR_CLEANUP',
      'Cannot leave this node to kube-proxy, which has no rules here: start it, wait until it has synced, and try again',
    );
  }
  if (failed.length > 0) throw new NodeplaneError('ERR_CLEANUP', `Cannot remove all of ours: ${failed.join('; ')}`);
  return done;
}

function tracesOf(family: IpFamily): Trace[] {
  return [...Object.values(MODES).flatMap((mode) => mode.traces(family, { exec })), localhostTrace(family)];
}

/** By its table in mode nftables, and by its chain in the others. Ours goes by the same name in mode iptables, and is taken over. */
async function hasKubeProxyRules(family: IpFamily): Promise<boolean> {
  const nftFamily = family === 'IPv4' ? 'ip' : 'ip6';
  try {
    const tables = closing(Nftables.open(), (nft) => nft.listTables(nftFamily));
    if (tables.some(({ name }) => name === 'kube-proxy')) return true;
  } catch {
    // A kernel without nf_tables has legacy iptables.
  }
  for (const tool of bothVariants(family, exec)) {
    if (!(await isUsable(tool))) continue;
    const services = (await tool.saveAll()).get('nat')?.get('KUBE-SERVICES');
    if (services && services.rules.length > 0) return true;
  }
  return false;
}
