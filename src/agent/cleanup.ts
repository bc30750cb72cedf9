import { errorText, IP_FAMILIES, NodeplaneError, type Removals } from '../core/index.ts';
import { needNetAdmin } from '../preflight/index.ts';
import type { ProxyMode, TraceOptions } from '../proxy/index.ts';
import { localhostTrace } from '../proxy/localhost/index.ts';
import { exec } from '../sys/index.ts';
import { MODES } from './services/modes/modes.ts';

export interface CleanupOptions extends Partial<TraceOptions> {
  /** What a proxy in this mode leaves, and nothing else. @default every mode */
  readonly mode?: ProxyMode | undefined;
  /** Hears of each thing, and says whether to do it. @default everything */
  readonly removals?: Removals;
}

/**
 * Removes everything of nodeplane and kube-proxy that makes Services work, in every mode and both families. Goes on after a
 * failure, so that as much as possible is gone.
 *
 * @returns one sentence for each place looked at
 * @throws ERR_CONFIG without CAP_NET_ADMIN; ERR_CLEANUP naming every place that could not be cleaned
 */
export async function cleanup({ mode: only, removals, ...options }: CleanupOptions = {}): Promise<string[]> {
  needNetAdmin();
  const done: string[] = [];
  const failed: string[] = [];
  const modes = only === undefined ? Object.values(MODES) : [MODES[only]];
  const ofModes = modes.flatMap((mode) => IP_FAMILIES.flatMap((family) => mode.traces(family, { exec, ...options })));
  // Once no NodePort is translated any more, nothing of localhost leaves the node.
  const traces = [...ofModes, ...(only === undefined ? IP_FAMILIES.map(localhostTrace) : [])];
  for (const { name, isUsable, clean } of traces) {
    if (!(await isUsable())) {
      done.push(`${name}: not usable on this machine, so there is nothing to remove`);
      continue;
    }
    try {
      await clean(removals);
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
