import { type IpAddress, NodeplaneError } from '../../core/index.ts';
import {
  formatCollected,
  type IpamConfig,
  isNoted,
  noteAttachment,
  type PlannedReservation,
  readResolvConf,
  release,
  reserve,
  type StandingAttachment,
} from '../../ipam/index.ts';
import { failpoint } from '../../sys/index.ts';
import { storeLocation } from '../config/config.ts';
import type { AssignedAddresses } from '../link/addressing.ts';
import type { Attaching } from '../link/attaching.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import { attachmentNote } from './attachment-note.ts';
import { wantedFeatures } from './wanted-features.ts';

const NO_ADDRESSES: AssignedAddresses = { ips: [], routes: [], dns: {} };

/**
 * Has addresses assigned to the attachment by whoever manages those of its network, and notes it in the journal.
 *
 * @param excluded addresses that must not be handed out although nobody reserved them
 * @throws ERR_IPAM_*; CniError, of the plugin that manages the addresses
 */
export async function assignAddresses(
  attaching: Attaching,
  excluded: readonly IpAddress[],
): Promise<AssignedAddresses> {
  const { ipam } = attaching.config;
  if (ipam.kind === 'native') return assignNatively(attaching, ipam.config, excluded);
  const assigned = ipam.kind === 'none' ? NO_ADDRESSES : await assignByDelegate(attaching, ipam.type);
  noteUnreserved(attaching, assigned);
  return assigned;
}

async function assignByDelegate({ env, header, undo }: Attaching, type: string): Promise<AssignedAddresses> {
  const { addByDelegate, deleteByDelegate, findPlugin } = await import('./delegate.ts');
  findPlugin(type, env);
  undo.add(`have addresses assigned by ${type}`, () => deleteByDelegate(type, header, env));
  const { ips, routes, dns } = await addByDelegate(type, header, env);
  if (ips.length === 0) throw new CniError(CNI_ERROR.DELEGATE_FAILED, `IPAM plugin "${type}" assigned no address`);
  return { ips, routes, dns };
}

/** What is known of every attachment, whoever manages its addresses. */
function recordOf({ config, key }: Attaching) {
  return { owner: key.owner, name: key.hostName, features: wantedFeatures(config, key).map(({ name }) => name) };
}

function noteUnreserved(attaching: Attaching, { ips }: AssignedAddresses): void {
  const { header, key, undo } = attaching;
  const location = storeLocation(header);
  undo.add('note the attachment', () => void release(location, key.owner, key.hostName));
  noteAttachment(location, { ...recordOf(attaching), note: attachmentNote(attaching, ips) });
}

async function assignNatively(
  attaching: Attaching,
  ipam: IpamConfig,
  excluded: readonly IpAddress[],
): Promise<AssignedAddresses> {
  const { header, key, undo, host, warn } = attaching;
  const dns = ipam.resolvConf ? readResolvConf(ipam.resolvConf) : {};
  const location = storeLocation(header);
  const { rangeSets, exclude, requested } = ipam;
  const standing = isNoted(location) ? [] : await attachmentsInKernel(attaching);
  const request = {
    ...recordOf(attaching),
    standing,
    rangeSets,
    excluded,
    exclude,
    requested,
    note: (reservations: readonly PlannedReservation[]) => attachmentNote(attaching, reservations.map(ipOf)),
  };
  const tryReserve = () => reserve(location, request);
  let reservations: ReturnType<typeof reserve>;
  try {
    reservations = tryReserve();
  } catch (error) {
    if (!(error instanceof NodeplaneError) || error.code !== 'ERR_IPAM_EXHAUSTED') throw error;
    const { reclaim } = await import('./reclaim.ts');
    const collected = await reclaim(location, host, warn);
    for (const gone of collected) warn(`Gave back ${formatCollected(gone)}`);
    if (collected.length === 0) throw error;
    reservations = tryReserve();
  }
  undo.add('reserve addresses', () => void release(location, key.owner, key.hostName));
  failpoint('reserved');
  return { ips: reservations.map(ipOf), routes: ipam.routes, dns };
}

/** Nearly always the network is new, and there are none. */
async function attachmentsInKernel({ key, host, warn }: Attaching): Promise<readonly StandingAttachment[]> {
  const { standingAttachments } = await import('./standing.ts');
  const standing = standingAttachments(host, key.network);
  const [first] = standing;
  if (first) {
    const text = `the first "${first.owner.containerId}"`;
    warn(
      `The address reservations of network "${key.network}" were removed under running pods; those of ${standing.length}, ${text}, are made again`,
    );
  }
  return standing;
}

function ipOf({ address, range }: PlannedReservation): AssignedAddresses['ips'][number] {
  return { address: { address, prefixLength: range.subnet.prefixLength }, gateway: range.gateway };
}
