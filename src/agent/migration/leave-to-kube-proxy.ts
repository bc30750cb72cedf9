import { errorText, IP_FAMILIES, type IpFamily, NodeplaneError, type Removals } from '../../core/index.ts';
import { needNetAdmin, presentProxies, readNode, readRuleSets } from '../../preflight/index.ts';
import type { Trace } from '../../proxy/index.ts';
import { localhostTrace } from '../../proxy/localhost/index.ts';
import { exec } from '../../sys/index.ts';
import { MODES } from '../services/modes/modes.ts';

/**
 * The way back to kube-proxy, once it has made its rules: removes what is nodeplane's and kube-proxy does not know, and so would
 * stay for ever. A family without rules of a kube-proxy (ours go by the same names) is left as it is, because Services would stop there.
 *
 * @param removals hears of each thing, and says whether to do it. @default everything
 * @returns one sentence for each place looked at
 * @throws ERR_CONFIG without CAP_NET_ADMIN; ERR_CLEANUP when kube-proxy has rules in no family, or naming every place
 *   that could not be cleaned
 */
export async function leaveToKubeProxy(removals?: Removals): Promise<string[]> {
  needNetAdmin();
  const done: string[] = [];
  const failed: string[] = [];
  let served = 0;
  const node = readNode({ exec, variant: undefined });
  const { unread } = await readRuleSets(node);
  for (const family of IP_FAMILIES) {
    if (!(await presentProxies(node, family)).some(({ by }) => by === 'kube-proxy')) {
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
    const doubt = unread.length === 0 ? '' : `, as far as they can be read (${unread.join('; ')})`;
    throw new NodeplaneError(
      'ERR_CLEANUP',
      `Cannot leave this node to kube-proxy, which has no rules here${doubt}: start it, wait until it has synced, and try again`,
    );
  }
  if (failed.length > 0) throw new NodeplaneError('ERR_CLEANUP', `Cannot remove all of ours: ${failed.join('; ')}`);
  return done;
}

function tracesOf(family: IpFamily): Trace[] {
  return [...Object.values(MODES).flatMap((mode) => mode.traces(family, { exec })), localhostTrace(family)];
}
