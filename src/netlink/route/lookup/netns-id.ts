import { encodeBody } from '../../attribute-set.ts';
import type { Netlink } from '../../netlink.ts';
import { NETNSA, RTM_GETNSID, rtgenmsg } from '../../uapi/net-namespace.ts';

/**
 * The number that the socket's namespace has for another one, as in `Link.peerNetnsId`; undefined: it has none, because no link of
 * it leads there.
 *
 * @param fd a descriptor of the other namespace
 * @throws KernelError, ERR_NETLINK_SOCKET
 */
export function getNetnsId(netlink: Netlink, fd: number): number | undefined {
  const answer = netlink.query({
    type: RTM_GETNSID,
    flags: 0,
    operation: 'RTM_GETNSID',
    object: `namespace of descriptor ${fd}`,
    payload: encodeBody(rtgenmsg, {}, NETNSA, { NETNSA_FD: fd }),
  });
  const { NETNSA_NSID: id = -1 } = NETNSA.decode(answer, rtgenmsg.size);
  return id < 0 ? undefined : id;
}
