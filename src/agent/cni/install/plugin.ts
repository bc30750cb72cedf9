import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NodeplaneError } from '../../../core/index.ts';
import type { Logger } from '../../logger.ts';
import { PLUGIN_NAME } from './conflist.ts';
import { placeFile, readIfThere } from './host-file.ts';

/** What the build calls the plugin for the host; it lies beside the agent. */
const HOST_PLUGIN_FILE = 'nodeplane-cni-shim';
/** Older runtimes bring no loopback of their own. Another package's is left alone. */
const LOOPBACK = 'loopback';

/** What is installed where. */
export interface PluginInstallation {
  /** Where the runtime looks for plugins. */
  readonly binDir: string;
  /** The plugin for the host. */
  readonly plugin: Uint8Array;
  readonly logger: Logger;
}

/**
 * Puts the plugin on the host, unless it is there: as ours, and as `loopback` if there is none.
 *
 * @throws rejects with ERR_CNI_INSTALL, or what the folder cannot be made with
 */
export async function installPlugin({ binDir, plugin, logger }: PluginInstallation): Promise<void> {
  mkdirSync(binDir, { recursive: true, mode: 0o755 });
  for (const name of [PLUGIN_NAME, LOOPBACK]) {
    const path = join(binDir, name);
    const there = readIfThere(path);
    if (there?.equals(plugin) || (there && name === LOOPBACK)) continue;
    await placeFile(path, plugin, 0o755);
    logger.info({ path }, 'CNI plugin installed');
  }
}

/** The plugin for the host, out of the agent's own folder. Throws ERR_CONFIG when the build made none. */
export function readHostPlugin(): Buffer {
  const path = besideAgent(HOST_PLUGIN_FILE);
  try {
    return readFileSync(path);
  } catch (cause) {
    const message = `Cannot serve CNI: there is no plugin for the host at "${path}"; build it on a machine with a C compiler`;
    throw new NodeplaneError('ERR_CONFIG', message, { facts: { path }, cause });
  }
}

/** The path of a file that the build puts beside the agent. */
export function besideAgent(name: string): string {
  return join(dirname(fileURLToPath(import.meta.url)), name);
}
