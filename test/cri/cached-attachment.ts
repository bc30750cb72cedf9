import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CniResult, ConfList } from '../lab/lab.ts';
import type { CniRuntime } from './plugins.ts';
import type { CriPod } from './pod.ts';

/** What libcni keeps of an attachment, in files of its own under /var/lib/cni. */
interface CachedAttachment {
  /** The configuration list as it was, in base64. */
  readonly config: string;
  readonly ifName: string;
  readonly cniArgs: readonly (readonly [string, string])[];
  readonly capabilityArgs: Readonly<Record<string, unknown>>;
  readonly result: CniResult;
}

/**
 * CHECK of a pod by what its runtime keeps, as libcni does it: each plugin of the list gets its object with the list's name
 * and version, what the runtime added for capabilities that it has, and the result of the ADD.
 *
 * @returns the message of the first plugin that finds something; undefined when all is well
 */
export function checkCached({ enclosure, cniBinDir }: CniRuntime, { sandboxId }: CriPod): string | undefined {
  const file = join(enclosure.folder, `var-lib/cni/results/nodeplane-${sandboxId}-eth0`);
  const cached = JSON.parse(readFileSync(file, 'utf8')) as CachedAttachment;
  const { name, cniVersion, plugins } = JSON.parse(Buffer.from(cached.config, 'base64').toString()) as ConfList;
  const env = {
    CNI_COMMAND: 'CHECK',
    CNI_CONTAINERID: sandboxId,
    CNI_NETNS: cached.result.interfaces!.find(({ sandbox }) => sandbox)!.sandbox!,
    CNI_IFNAME: cached.ifName,
    CNI_PATH: cniBinDir,
    CNI_ARGS: cached.cniArgs.map((pair) => pair.join('=')).join(';'),
  };
  for (const { capabilities = {}, ...plugin } of plugins as (ConfList['plugins'][number] & Capabilities)[]) {
    const passed = Object.entries(cached.capabilityArgs).filter(([key]) => capabilities[key]);
    const config = {
      ...plugin,
      name,
      cniVersion,
      prevResult: cached.result,
      ...(passed.length > 0 && { runtimeConfig: Object.fromEntries(passed) }),
    };
    try {
      enclosure.run(join(cniBinDir, plugin.type), [], { env, input: JSON.stringify(config) });
    } catch (error) {
      return (JSON.parse((error as { stdout: string }).stdout) as { msg: string }).msg;
    }
  }
  return undefined;
}

interface Capabilities {
  readonly capabilities?: Readonly<Record<string, boolean>>;
}
