import type { IpFamily } from '../../core/index.ts';
import { familyNumber } from '../address-family.ts';
import { decodeError } from '../decode-error.ts';
import type { Netlink } from '../netlink.ts';
import { IPSET_ATTRIBUTES } from '../uapi/ip-set.ts';
import { nfgenmsg } from '../uapi/nfnetlink.ts';
import { AF_UNSPEC } from '../uapi/rtnetlink.ts';
import { ipsetRequest } from './ipset-request.ts';

/** The versions of the ipset protocol a kernel speaks, both included; requests here are of version 6. */
export interface IpsetProtocol {
  readonly oldest: number;
  readonly newest: number;
}

/**
 * The beginning of every conversation about sets. It loads the module ip_set if it can.
 *
 * @param netlink a conversation of protocol NETLINK_NETFILTER
 * @throws KernelError, EINVAL on a kernel without ipset
 */
export function getIpsetProtocol(netlink: Netlink): IpsetProtocol {
  return decodeIpsetProtocol(netlink.query(ipsetRequest('IPSET_CMD_PROTOCOL', 'version', {})));
}

/** Exported for tests. */
export function decodeIpsetProtocol(payload: Uint8Array): IpsetProtocol {
  nfgenmsg.decode(payload);
  const { IPSET_ATTR_PROTOCOL: newest, IPSET_ATTR_PROTOCOL_MIN } = IPSET_ATTRIBUTES.decode(payload, nfgenmsg.size);
  if (newest === undefined) throw decodeError('IPSET_CMD_PROTOCOL', 'it has no IPSET_ATTR_PROTOCOL');
  // Kernels that speak one version alone do not say so twice.
  return { oldest: IPSET_ATTR_PROTOCOL_MIN ?? newest, newest };
}

/**
 * The newest revision of a type of set this kernel has; it loads the module if it can.
 *
 * @throws KernelError when there is no such type (an errno of ipset's own)
 */
export function getSetTypeRevision(netlink: Netlink, type: string, family: IpFamily | undefined): number {
  const request = ipsetRequest('IPSET_CMD_TYPE', `"${type}"`, {
    IPSET_ATTR_TYPENAME: type,
    IPSET_ATTR_FAMILY: family ? familyNumber(family) : AF_UNSPEC,
  });
  return decodeSetTypeRevision(netlink.query(request));
}

/** Exported for tests. */
export function decodeSetTypeRevision(payload: Uint8Array): number {
  nfgenmsg.decode(payload);
  const { IPSET_ATTR_REVISION } = IPSET_ATTRIBUTES.decode(payload, nfgenmsg.size);
  if (IPSET_ATTR_REVISION === undefined) throw decodeError('IPSET_CMD_TYPE', 'it has no IPSET_ATTR_REVISION');
  return IPSET_ATTR_REVISION;
}
