import { isMapping } from '../../../core/index.ts';
import type { AttachmentNote } from '../../../ipam/index.ts';
import { type MacvlanIpam, macvlanIpamOf } from '../../config/macvlan-config.ts';
import type { AttachmentKey } from '../../protocol/attachment-key.ts';
import type { Environment, NetworkName } from '../../protocol/environment.ts';
import { type NetworkHeader, VALID_ATTACHMENTS } from '../../protocol/header.ts';
import type { Asked } from '../feature.ts';
import { MACVLAN_NAME } from './name.ts';

/** A request for an IPAM plugin. */
export interface IpamRequest {
  readonly header: NetworkHeader;
  readonly env: Environment;
}

/**
 * What the plugin is asked that gives second interfaces their addresses: as that of a network of its own, so that the
 * reservations of the two do not mix, and without what the runtime wants for the first interface.
 *
 * @param more keys that one verb needs
 */
export function ipamRequest({ header, env }: IpamRequest, ipam: MacvlanIpam, more: object = {}): IpamRequest {
  const { cniVersion, type } = header;
  const name = `${header.name}-${MACVLAN_NAME}` as NetworkName;
  return {
    header: { cniVersion, name, type, raw: { cniVersion, name, type, ipam, ...more } },
    env: { ...env, CNI_IFNAME: MACVLAN_NAME },
  };
}

/** DEL: gives back the addresses of a pod's second interface, as its record says it got them. Throws CniError of the plugin. */
export async function giveBackAddresses({ header, env }: Asked, note: AttachmentNote | undefined): Promise<void> {
  const ipam = recordedIpam(note);
  if (!ipam) return;
  const { deleteByDelegate } = await import('../../verbs/delegate.ts');
  const request = ipamRequest({ header, env }, ipam);
  await deleteByDelegate(ipam.type, request.header, request.env);
}

/** GC: has the addresses of all second interfaces given back but those of valid attachments. Throws CniError of the plugin. */
export async function collectAddresses({ header, env, warn }: Asked, valid: readonly AttachmentKey[]): Promise<void> {
  const { macvlan: key } = header.raw;
  const ipam = isMapping(key) ? macvlanIpamOf(key) : undefined;
  if (!ipam) return;
  const { collectByDelegate } = await import('../../verbs/delegate.ts');
  const interfaces = valid.map(({ owner }) => ({ containerID: owner.containerId, ifname: MACVLAN_NAME }));
  const request = ipamRequest({ header, env }, ipam, { [VALID_ATTACHMENTS]: interfaces });
  await collectByDelegate(ipam.type, request.header, request.env, warn);
}

/**
 * The address management of the second interface that an attachment's record names; undefined when it has no such interface, or
 * one without addresses. What it was made with counts, whatever the configuration says now.
 */
function recordedIpam(note: AttachmentNote | undefined): MacvlanIpam | undefined {
  const key = note?.macvlan;
  try {
    return isMapping(key) ? macvlanIpamOf(key) : undefined;
  } catch {
    return undefined;
  }
}
