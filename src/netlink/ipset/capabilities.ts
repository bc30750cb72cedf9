import type { IpFamily } from '../../core/index.ts';
import { familyNumber } from '../address-family.ts';
import { decodeError } from '../decode-error.ts';
import type { Netlink } from '../netlink.ts';
import { IPSET_ATTRIBUTES } from '../uapi/ip-set.ts';
import { nfgenmsg } from '../uapi/nfnetlink.ts';
import { AF_UNSPEC } from '../uapi/rtnetlink.ts';
import { ipsetRequest } from './ipset-request.ts';

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
