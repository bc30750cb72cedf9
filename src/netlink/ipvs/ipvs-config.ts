import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { genlmsghdr } from '../uapi/genetlink.ts';
import { IPVS_CMD_ATTRIBUTES } from '../uapi/ip-vs.ts';
import { type IpvsFamily, ipvsRequest } from './ipvs-request.ts';

/** How long IPVS remembers idle connections, in seconds; set as 0 one stays as it is. */
export interface IpvsTimeouts {
  readonly tcp: number;
  /** After a FIN. */
  readonly tcpFin: number;
  readonly udp: number;
}

/** Sets the timeouts of the namespace. EINVAL for one the kernel cannot count. */
export function setIpvsTimeouts(family: IpvsFamily, { tcp, tcpFin, udp }: IpvsTimeouts): NetlinkRequest {
  return ipvsRequest(family, 'IPVS_CMD_SET_CONFIG', `timeouts ${tcp}, ${tcpFin}, ${udp} s`, {
    IPVS_CMD_ATTR_TIMEOUT_TCP: tcp,
    IPVS_CMD_ATTR_TIMEOUT_TCP_FIN: tcpFin,
    IPVS_CMD_ATTR_TIMEOUT_UDP: udp,
  });
}

/** The timeouts of the namespace. Throws KernelError, ERR_NETLINK_DECODE. */
export function getIpvsTimeouts(netlink: Netlink, family: IpvsFamily): IpvsTimeouts {
  return decodeTimeouts(netlink.query(ipvsRequest(family, 'IPVS_CMD_GET_CONFIG', 'timeouts', {})));
}

/** Exported for tests. */
export function decodeTimeouts(payload: Uint8Array): IpvsTimeouts {
  genlmsghdr.decode(payload);
  const attributes = IPVS_CMD_ATTRIBUTES.decode(payload, genlmsghdr.size);
  return {
    tcp: attributes.IPVS_CMD_ATTR_TIMEOUT_TCP ?? 0,
    tcpFin: attributes.IPVS_CMD_ATTR_TIMEOUT_TCP_FIN ?? 0,
    udp: attributes.IPVS_CMD_ATTR_TIMEOUT_UDP ?? 0,
  };
}
