import { errorText, type IpFamily, NodeplaneError } from '../core/index.ts';
import type { TraceOptions } from '../proxy/index.ts';
import { localhostTrace } from '../proxy/localhost/index.ts';
import { exec } from '../sys/index.ts';
import { MODES } from './services/modes/modes.ts';

const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

/**
 * Removes everything of nodeplane and kube-proxy that makes Services work, in every mode and both families. Goes on after a
 * failure, so that as much as possible is gone.
 *
 * @returns one sentence for each place looked at
 * @throws ERR_CLEANUP naming every place that could not be cleaned
 */
export async function cleanup(options: Partial<TraceOptions> = {}): Promise<string[]> {
  const done: string[] = [];
  const failed: string[] = [];
  const ofModes = Object.values(MODES).flatMap((mode) =>
    FAMILIES.flatMap((family) => mode.traces(family, { exec, ...options })),
  );
  // Once no NodePort is translated any more, nothing of localhost leaves the node.
  const traces = [...ofModes, ...FAMILIES.map(localhostTrace)];
  for (const { name, isUsable, clean } of traces) {
    if (!(await isUsable())) {
      done.push(`${name}: not usable on this machine, so there is nothing to remove`);
      continue;
    }
    try {
      await clean();
      done.push(`${name}: clean`);
    } catch (error) {
      failed.push(`${name}: ${errorText(error)}`);
    }
  }
  if (failed.length > 0) {
    throw new NodeplaneError('ERR_CLEANUP', `Cannot remove all rules: ${failed.join('; ')}`);
  }
  return done;
}
