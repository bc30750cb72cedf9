import { encodeBody } from './attribute-set.ts';
import { decodeError } from './decode-error.ts';
import type { NetlinkRequest } from './message.ts';
import type { Netlink } from './netlink.ts';
import { CTRL_ATTRIBUTES, CTRL_CMD_GETFAMILY, CTRL_VERSION, GENL_ID_CTRL, genlmsghdr } from './uapi/genetlink.ts';

/**
 * The message type of a generic netlink family, which the kernel gave it when it was registered. The kernel tries to load
 * the module of a family it does not know.
 *
 * @param netlink a conversation of protocol NETLINK_GENERIC
 * @throws KernelError ENOENT (`isNotFound`) when there is no such family; ERR_NETLINK_DECODE
 */
export function resolveFamily(netlink: Netlink, name: string): number {
  return decodeFamilyId(netlink.query(familyQuery(name)));
}

/** The request behind `resolveFamily`. */
export function familyQuery(name: string): NetlinkRequest {
  return {
    type: GENL_ID_CTRL,
    flags: 0,
    operation: 'CTRL_CMD_GETFAMILY',
    object: `"${name}"`,
    payload: encodeBody(genlmsghdr, { cmd: CTRL_CMD_GETFAMILY, version: CTRL_VERSION }, CTRL_ATTRIBUTES, {
      CTRL_ATTR_FAMILY_NAME: name,
    }),
  };
}

/** Exported for tests. */
export function decodeFamilyId(payload: Uint8Array): number {
  genlmsghdr.decode(payload);
  const { CTRL_ATTR_FAMILY_ID } = CTRL_ATTRIBUTES.decode(payload, genlmsghdr.size);
  if (CTRL_ATTR_FAMILY_ID === undefined) throw decodeError('CTRL_CMD_NEWFAMILY', 'it has no CTRL_ATTR_FAMILY_ID');
  return CTRL_ATTR_FAMILY_ID;
}
