import { isMapping } from '../../core/index.ts';
import {
  collectInvalid,
  entriesUnderWay,
  formatCollected,
  isUnderWay,
  journalEntry,
  type StoreLocation,
} from '../../ipam/index.ts';
import { type Netlink, withNetlink } from '../../netlink/index.ts';
import { listLinks } from '../../netlink/route/index.ts';
import { NETLINK_ROUTE } from '../../netlink/uapi/index.ts';
import { delegateOf, storeLocation } from '../config/config.ts';
import { FEATURES } from '../features/index.ts';
import { deleteIfPresent, isOf } from '../link/host-link.ts';
import { type AttachmentKey, attachmentKey, keyOfEntry } from '../protocol/attachment-key.ts';
import { type ContainerId, type InterfaceName, isIdentifier, isInterfaceName } from '../protocol/environment.ts';
import { type NetworkHeader, VALID_ATTACHMENTS } from '../protocol/header.ts';
import { invalidConfig, invalidKey } from '../protocol/json.ts';
import type { VerbRequest } from './request.ts';
import { leavePod, loadForTearDown } from './tear-down.ts';

/** Of drafts of the specification; runtimes write both. */
const LEGACY_VALID_ATTACHMENTS = 'cni.dev/attachments';

/**
 * GC: deletes what belongs to attachments of the network that the runtime does not name: links, what features made, and
 * addresses, in this order. An ADD that is under way in another process is left alone.
 *
 * @throws CniError 7 when the runtime does not say what is valid
 */
export async function collectGarbage({ header, env, warn }: VerbRequest): Promise<undefined> {
  const valid = parseValid(header);
  const location = storeLocation(header);
  const features = await Promise.all(FEATURES.map(({ load }) => load()));
  await withNetlink(NETLINK_ROUTE, async (host) => {
    await deleteInvalidLinks(host, header, valid, location, warn);
    // An ADD is noted before its features make anything, by as long as it takes to make a link.
    const spared = [...valid, ...entriesUnderWay(location).map((entry) => keyOfEntry(header.name, entry))];
    for (const feature of features) feature.collect({ network: header.name, valid: spared, host });
  });
  const delegate = delegateOf(header);
  if (delegate !== undefined) await (await import('./delegate.ts')).collectByDelegate(delegate, header, env, warn);
  for (const feature of features) await feature.collectAddresses?.({ header, env, warn }, valid);
  const owners = new Set(valid.map(({ owner }) => `${owner.containerId} ${owner.ifname}`));
  const containers = new Set<string>(valid.map(({ owner }) => owner.containerId));
  const isValid = (containerId: string, ifname: string | undefined) =>
    ifname === undefined ? containers.has(containerId) : owners.has(`${containerId} ${ifname}`);
  const names = new Set<string>(valid.map(({ hostName }) => hostName));
  for (const collected of collectInvalid(location, isValid, (name) => names.has(name)))
    warn(`Gave back ${formatCollected(collected)}`);
}

function parseValid({ name, raw }: NetworkHeader): AttachmentKey[] {
  const key = VALID_ATTACHMENTS in raw ? VALID_ATTACHMENTS : LEGACY_VALID_ATTACHMENTS;
  // Nothing said and "none are valid" would look alike, and the second deletes everything.
  if (!(key in raw)) throw invalidConfig(`Cannot collect garbage: key "${VALID_ATTACHMENTS}" is missing`);
  const list = raw[key] ?? [];
  if (!Array.isArray(list)) throw invalidKey(key, list, 'it must be a list');
  return list.map((item: unknown, i) => {
    const { containerID, ifname } = isMapping(item) ? item : {};
    if (typeof containerID !== 'string' || !isIdentifier(containerID)) {
      throw invalidKey(`${key}[${i}]`, item, '"containerID" is no container ID');
    }
    if (typeof ifname !== 'string' || !isInterfaceName(ifname)) {
      throw invalidKey(`${key}[${i}]`, item, '"ifname" is no name of an interface');
    }
    return attachmentKey(name, { containerId: containerID as ContainerId, ifname: ifname as InterfaceName });
  });
}

async function deleteInvalidLinks(
  host: Netlink,
  { name: network }: NetworkHeader,
  valid: readonly AttachmentKey[],
  location: StoreLocation,
  warn: (message: string) => void,
): Promise<void> {
  const validNames = new Set<string>(valid.map(({ hostName }) => hostName));
  for (const link of listLinks(host)) {
    const { index, name, alias, kind } = link;
    if (kind !== 'veth' || !(alias === '' || alias.startsWith(`${network}/`)) || validNames.has(name)) continue;
    const entry = journalEntry(location, name);
    if (alias === '' && !(entry && isOf(link, keyOfEntry(network, entry)))) continue;
    if (entry && isUnderWay(entry)) continue;
    if (entry)
      leavePod(await loadForTearDown(entry.features), { key: keyOfEntry(network, entry), host, pod: undefined });
    deleteIfPresent(host, index);
    warn(`Deleted link "${name}" of "${alias || 'an ADD that was killed'}"`);
  }
}
