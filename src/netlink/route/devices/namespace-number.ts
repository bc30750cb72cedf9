import { encodeBody } from '../../attribute-set.ts';
import type { Netlink } from '../../netlink.ts';
import { NETNSA, RTM_GETNSID, rtgenmsg } from '../../uapi/rtnetlink.ts';

/**
 * The number that the socket's namespace gives another one, as `Link.peerNetnsId` has it; undefined when it has none: no device of
 * the one has its other end there.
 *
 * @param fd an open descriptor of the other namespace
 * @throws KernelError
 */
export function namespaceNumber(netlink: Netlink, fd: number): number | undefined {
  const answer = netlink.query({
    type: RTM_GETNSID,
    flags: 0,
    operation: 'RTM_GETNSID',
    object: 'the number of a network namespace',
    payload: encodeBody(rtgenmsg, {}, NETNSA, { NETNSA_FD: fd }),
  });
  const number = NETNSA.decode(answer, rtgenmsg.size).NETNSA_NSID ?? -1;
  return number < 0 ? undefined : number;
}
