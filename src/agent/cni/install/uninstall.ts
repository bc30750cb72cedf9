import { readdirSync, rmdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isNetworkName, isPodLink, loadRemoval } from '../../../cni/index.ts';
import type { CniSettings } from '../../../config/index.ts';
import {
  attempt,
  errorText,
  NODE_PATHS,
  NodeplaneError,
  parseJson,
  type Removals,
  tryParseIp,
} from '../../../core/index.ts';
import { closing, withNetlink } from '../../../netlink/index.ts';
import {
  committedElsewhere,
  Nftables,
  type NftChange,
  type NftRuleset,
  NOTHING_COMMITTED,
} from '../../../netlink/nftables/index.ts';
import { listLinks } from '../../../netlink/route/index.ts';
import { NETLINK_ROUTE } from '../../../netlink/uapi/index.ts';
import { needNetAdmin } from '../../../preflight/index.ts';
import { Spool } from '../kept/spool.ts';
import { isAnswered } from '../server/server.ts';
import { CONFLIST_FILE, PLUGIN_NAME, standardConflist } from './conflist.ts';
import { readIfThere, removeFile } from './host-file.ts';

export interface UninstallOptions extends Pick<CniSettings, 'binDir' | 'confDir' | 'dataDir' | 'socket' | 'spoolDir'> {
  /** Go on although pods are attached: they keep their network, and their runtime can no longer remove them. */
  readonly force: boolean;
  /** Hears of each thing, and says whether to do it. @default everything */
  readonly removals?: Removals | undefined;
}

const INSTALLED = 'a file of the name that the agent installs';
const OWN_DIRECTORY = /\/nodeplane(\/cni)?$/;

/**
 * Removes what the agent installed for the container runtime: the configuration first, so that no new pod comes, then the
 * plugin, then the state if no pod is left.
 *
 * @returns one sentence for each thing removed or left
 * @throws ERR_CONFIG without CAP_NET_ADMIN; ERR_CNI_INSTALL when an agent runs, when pods are attached and `force` is
 *   not set, or a file cannot be removed
 */
export async function uninstallCni(options: UninstallOptions): Promise<string[]> {
  const { binDir, confDir, socket, removals } = options;
  needNetAdmin();
  if (await isAnswered(socket)) {
    throw refusal(`an agent serves "${socket}" and would install it again; end it first`);
  }
  const conflist = join(confDir, CONFLIST_FILE);
  const network = networkOf(readIfThere(conflist));
  const left = attachmentsLeft(network, options);
  if (left.length > 0 && !options.force) {
    throw refusal(
      `pods are still attached (${left.join(', ')}); drain the node with an agent running, or give --force`,
    );
  }
  const done: string[] = [];
  const remove = (path: string) => {
    if (readIfThere(path) === undefined || removals?.note({ object: path, why: INSTALLED }) === false) return;
    if (removeFile(path)) done.push(`${path}: removed`);
  };
  remove(conflist);
  const plugin = join(binDir, PLUGIN_NAME);
  const loopback = join(binDir, 'loopback');
  // Only if it is a copy of ours.
  const content = readIfThere(plugin);
  if (content && readIfThere(loopback)?.equals(content)) remove(loopback);
  remove(plugin);
  if (left.length > 0) done.push(`State left in place, because pods are attached (${left.join(', ')})`);
  else done.push(...removeState(network, options), ...(await removeRules(removals)));
  return done;
}

/** What shows that the network has pods here, in words. */
function attachmentsLeft(network: string, { dataDir, spoolDir }: UninstallOptions): string[] {
  const reservations = entries(join(dataDir, network)).filter((name) => tryParseIp(name) !== undefined).length;
  const kept = new Spool(spoolDir).count();
  const links = withNetlink(NETLINK_ROUTE, listLinks).filter((link) => isPodLink(link, network)).length;
  return [
    ...(links > 0 ? [`links: ${links}`] : []),
    ...(reservations > 0 ? [`reserved addresses: ${reservations}`] : []),
    // Only an agent can settle them.
    ...(kept > 0 ? [`kept DEL requests: ${kept}`] : []),
  ];
}

function removeState(network: string, { dataDir, spoolDir, socket, removals }: UninstallOptions): string[] {
  const reservations = join(dataDir, network);
  const there = [reservations, spoolDir, socket, NODE_PATHS.nodeLock, NODE_PATHS.nodeGate].filter((path) =>
    entries(dirname(path)).includes(basename(path)),
  );
  const noted = there.map((path) => ({ object: path, why: 'the plugin’s state, and no pod is left' }));
  if (removals?.note(...noted) === false) return [];
  for (const path of there) rmSync(path, { recursive: true });
  // The directories around them, if they hold nothing else.
  const around = [dirname(spoolDir), dirname(dirname(spoolDir)), dirname(socket)];
  for (const directory of around.filter((path) => OWN_DIRECTORY.test(path))) removeIfEmpty(directory);
  return there.map((path) => `${path}: removed`);
}

async function removeRules(removals: Removals | undefined): Promise<string[]> {
  const { removeFeatures } = await loadRemoval();
  return closing(Nftables.open(), (nftables) => {
    try {
      return removeFeatures(removals ? notingRuleset(nftables, removals) : nftables);
    } catch (error) {
      // A kernel without nf_tables never had any.
      return [`Rules of pods in nftables: not looked at (${errorText(error)})`];
    }
  });
}

/** A ruleset whose transactions are noted first, and made only if they are to be. */
function notingRuleset(nftables: Nftables, removals: Removals): NftRuleset {
  return committedElsewhere(nftables, (changes) => {
    const noted = changes.map(({ object }) => ({ object: textOfObject(object), why: 'the plugin’s rules of pods' }));
    return removals.note(...noted) ? nftables.commit(changes) : NOTHING_COMMITTED;
  });
}

function textOfObject(object: NftChange['object']): string {
  const { family } = object;
  const table = object.kind === 'table' ? object.name : object.table;
  const place = `nftables, table ${family} ${table}`;
  if (object.kind === 'chain') return `${place}, chain ${object.name}`;
  return object.kind === 'rule' ? `${place}, chain ${object.chain}, rule ${object.handle}` : place;
}

function networkOf(conflist: Buffer | undefined): string {
  try {
    const { name } = parseJson(conflist?.toString('utf8') ?? '') as { name?: unknown };
    if (isNetworkName(name)) return name;
  } catch {
    // Gone or spoilt: what it was called without a user's list.
  }
  return standardConflist().network;
}

function entries(directory: string): string[] {
  return attempt(() => readdirSync(directory)) ?? [];
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // Something else is in it, or it is not there.
  }
}

function refusal(why: string): NodeplaneError {
  return new NodeplaneError('ERR_CNI_INSTALL', `Cannot remove the CNI plugin: ${why}`);
}
