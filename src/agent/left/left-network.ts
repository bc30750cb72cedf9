import { join } from 'node:path';
import { attempt, parseJson } from '../../core/index.ts';
import { CONFLIST_FILE, PLUGIN_NAME } from '../cni/install/conflist.ts';
import { readIfThere } from '../cni/install/host-file.ts';
import { isAnswered } from '../cni/server/server.ts';
import type { PartContext } from '../part.ts';
import { LeftBehind } from './left-behind.ts';

/** Or to have it be right. Without a network the runtime could not even remove the pods that are there. */
const REMEDY =
  'give --cni again, in which case requests to remove pods that were kept meanwhile are settled; or drain the node, end this agent, and run nodeplane cleanup --cni';

/** Of an agent without --cni: the configuration that one with --cni has installed. The runtime goes on making pods by it. */
export function leftNetwork({ config, clock, logger }: Pick<PartContext, 'config' | 'clock' | 'logger'>): LeftBehind {
  const { confDir, socket } = config.effective.nodeplane.cni;
  return new LeftBehind({
    clock,
    logger,
    isOurWork: config.cni !== undefined,
    look: () => lookAtNetwork(join(confDir, CONFLIST_FILE), socket),
    remedy: REMEDY,
    words: {
      lookFails: 'The CNI configuration of an agent with --cni cannot be looked for',
      found:
        'The CNI configuration of an agent with --cni is still here, and nobody serves it: pods can be neither made nor removed',
      gone: 'The CNI configuration of an agent with --cni is gone, or served',
    },
  });
}

/** Rejects with the system's error. */
async function lookAtNetwork(conflist: string, socket: string): Promise<string> {
  const content = readIfThere(conflist);
  if (content === undefined || !namesOurPlugin(content.toString('utf8'))) return '';
  return (await isAnswered(socket)) ? '' : conflist;
}

function namesOurPlugin(text: string): boolean {
  const list = attempt(() => parseJson(text)) as { readonly plugins?: unknown } | undefined;
  return Array.isArray(list?.plugins) && list.plugins.some((plugin) => plugin?.type === PLUGIN_NAME);
}
