import type { JournalEntry } from '../../../ipam/index.ts';
import { type MacvlanIpam, macvlanIpamOf } from '../../config/macvlan-config.ts';
import type { Environment, NetworkName } from '../../protocol/environment.ts';
import type { NetworkHeader } from '../../protocol/header.ts';
import { isObject } from '../../protocol/json.ts';
import { MACVLAN_NAME } from './name.ts';

/**
 * The address management of the second interface that an attachment's record names; undefined when it has no such interface, or
 * one without addresses. What it was made with counts, whatever the configuration says now.
 */
export function recordedIpam(entry: Pick<JournalEntry, 'note'> | undefined): MacvlanIpam | undefined {
  const key = entry?.note?.macvlan;
  try {
    return isObject(key) ? macvlanIpamOf(key) : undefined;
  } catch {
    return undefined;
  }
}

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
