import { dataDirectoryOf } from '../../../cni/index.ts';
import type { CniSettings } from '../../../config/index.ts';
import { NodeplaneError, readGivenFile } from '../../../core/index.ts';
import { completeConfig, NO_RANGES } from '../server/node-config.ts';
import { type Conflist, type ConflistNeeds, readConflist, standardConflist } from './conflist.ts';

/**
 * The list that the settings say is to be installed.
 *
 * @param masquerading whether and where a pod's packets are to be masqueraded by its own rules: not where the agent
 *   does it (--masquerade-cidrs)
 * @throws ERR_CONFIG
 */
export function configuredConflist(
  { conflist, macvlan }: CniSettings,
  masquerading: Pick<ConflistNeeds, 'ipMasq' | 'nonMasqueradeCidrs'> = {},
): Conflist {
  const needs = { podAnnotations: macvlan !== undefined, ...masquerading };
  if (conflist === '') return standardConflist(needs);
  let text: string;
  try {
    text = readGivenFile(conflist).toString('utf8');
  } catch (cause) {
    throw new NodeplaneError('ERR_CONFIG', `Cannot read the CNI configuration "${conflist}"`, { cause });
  }
  return readConflist(text, conflist, needs);
}

/** Where the reservations of pods are: the configuration of the installed network may name a directory of its own. */
export function dataDirsOf({ dataDir }: CniSettings, { statusConfig }: Conflist): readonly string[] {
  const { config } = completeConfig(statusConfig, { ranges: NO_RANGES, dataDir });
  return [...new Set([dataDir, dataDirectoryOf(config)])];
}

/** Whether the pods of the network have addresses of this node's ranges, and not of those that its configuration names. */
export function usesNodeRanges({ statusConfig }: Conflist): boolean {
  return completeConfig(statusConfig, { ranges: NO_RANGES, dataDir: '/' }).lacksRanges;
}
