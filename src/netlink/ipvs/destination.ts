import { formatIpPort, type IpAddress, type IpFamily } from '../../core/index.ts';
import { familyNumber, ipFamilyOf } from '../address-family.ts';
import { decodeError } from '../decode-error.ts';
import type { NetlinkRequest } from '../message.ts';
import { genlmsghdr } from '../uapi/genetlink.ts';
import { IP_VS_CONN_F_FWD_MASK, IP_VS_CONN_F_MASQ, IPVS_CMD_ATTRIBUTES } from '../uapi/ip-vs.ts';
import { decodeInetAddress, encodeInetAddress } from './inet-address.ts';
import { type IpvsFamily, ipvsRequest } from './ipvs-request.ts';
import { describeVirtualServer, keyAttributes, type VirtualServerKey } from './virtual-server.ts';

/** Where connections of a virtual server go. Ours always by translation of addresses (masquerading, NAT), and as many as come. */
export interface Destination {
  readonly address: IpAddress;
  readonly port: number;
  /** 0: nothing new, while what is open goes on. */
  readonly weight: number;
}

/** What others may set of a destination, and we never do. */
export interface ForeignSettings {
  /** From how many connections on it gets no new ones (`ipvsadm -x`). @default as many as come */
  readonly connectionLimit?: number | undefined;
  /** It gets packets by another way than translation (`ipvsadm -g`, `-i`): IP_VS_CONN_F_*. @default by translation */
  readonly forwarding?: number | undefined;
}

/** A destination as the kernel lists it. */
export interface ListedDestination extends Destination, ForeignSettings {
  /** Established ones. */
  readonly activeConnections: number;
  /** Those that open, close, or wait after that; all of UDP. */
  readonly inactiveConnections: number;
  /** Remembered clients of a virtual server with persistence. */
  readonly persistentConnections: number;
}

/** Adds a destination. EEXIST when it is there; ESRCH when there is no such virtual server. */
export function newDestination(family: IpvsFamily, key: VirtualServerKey, destination: Destination): NetlinkRequest {
  return destinationRequest(family, 'IPVS_CMD_NEW_DEST', key, destination);
}

/** Changes the weight of a destination, and takes away what others set (`ForeignSettings`). ENOENT when there is none. */
export function setDestination(family: IpvsFamily, key: VirtualServerKey, destination: Destination): NetlinkRequest {
  return destinationRequest(family, 'IPVS_CMD_SET_DEST', key, destination);
}

/** Removes a destination; what its connections get next depends on net/ipv4/vs/expire_nodest_conn. ENOENT when there is none. */
export function deleteDestination(
  family: IpvsFamily,
  key: VirtualServerKey,
  { address, port }: Pick<Destination, 'address' | 'port'>,
): NetlinkRequest {
  return ipvsRequest(family, 'IPVS_CMD_DEL_DEST', describe(key, address, port), {
    IPVS_CMD_ATTR_SERVICE: keyAttributes(key),
    IPVS_CMD_ATTR_DEST: {
      IPVS_DEST_ATTR_ADDR_FAMILY: familyNumber(address.family),
      IPVS_DEST_ATTR_ADDR: encodeInetAddress(address),
      IPVS_DEST_ATTR_PORT: port,
    },
  });
}

/** To be dumped: the destinations of one virtual server. The kernel has no list of all. Nothing when there is no such server. */
export function destinationListing(family: IpvsFamily, key: VirtualServerKey): NetlinkRequest {
  return ipvsRequest(family, 'IPVS_CMD_GET_DEST', `destinations of ${describeVirtualServer(key)}`, {
    IPVS_CMD_ATTR_SERVICE: keyAttributes(key),
  });
}

/**
 * Decodes one answer to `destinationListing`.
 *
 * @param serverFamily that of the virtual server: kernels before 3.18 do not tell the destination's
 * @throws ERR_NETLINK_DECODE
 */
export function decodeDestination(payload: Uint8Array, serverFamily: IpFamily): ListedDestination {
  genlmsghdr.decode(payload);
  const attributes = IPVS_CMD_ATTRIBUTES.decode(payload, genlmsghdr.size).IPVS_CMD_ATTR_DEST;
  const address = attributes?.IPVS_DEST_ATTR_ADDR;
  const port = attributes?.IPVS_DEST_ATTR_PORT;
  if (!attributes || !address || port === undefined) {
    throw decodeError('IPVS_CMD_NEW_DEST', 'it has no destination with address and port');
  }
  const number = attributes.IPVS_DEST_ATTR_ADDR_FAMILY ?? familyNumber(serverFamily);
  const family = ipFamilyOf(number);
  if (!family) throw decodeError('IPVS_DEST_ATTR_ADDR_FAMILY', `family ${number} is neither IPv4 nor IPv6`);
  const limit = attributes.IPVS_DEST_ATTR_U_THRESH ?? 0;
  const forwarding = (attributes.IPVS_DEST_ATTR_FWD_METHOD ?? IP_VS_CONN_F_MASQ) & IP_VS_CONN_F_FWD_MASK;
  return {
    address: decodeInetAddress(family, address, 'IPVS_DEST_ATTR_ADDR'),
    port,
    weight: attributes.IPVS_DEST_ATTR_WEIGHT ?? 0,
    activeConnections: attributes.IPVS_DEST_ATTR_ACTIVE_CONNS ?? 0,
    inactiveConnections: attributes.IPVS_DEST_ATTR_INACT_CONNS ?? 0,
    persistentConnections: attributes.IPVS_DEST_ATTR_PERSIST_CONNS ?? 0,
    ...(limit !== 0 && { connectionLimit: limit }),
    ...(forwarding !== IP_VS_CONN_F_MASQ && { forwarding }),
  };
}

function destinationRequest(
  family: IpvsFamily,
  operation: 'IPVS_CMD_NEW_DEST' | 'IPVS_CMD_SET_DEST',
  key: VirtualServerKey,
  { address, port, weight }: Destination,
): NetlinkRequest {
  return ipvsRequest(family, operation, `${describe(key, address, port)} (weight ${weight})`, {
    IPVS_CMD_ATTR_SERVICE: keyAttributes(key),
    IPVS_CMD_ATTR_DEST: {
      IPVS_DEST_ATTR_ADDR_FAMILY: familyNumber(address.family),
      IPVS_DEST_ATTR_ADDR: encodeInetAddress(address),
      IPVS_DEST_ATTR_PORT: port,
      IPVS_DEST_ATTR_FWD_METHOD: IP_VS_CONN_F_MASQ,
      IPVS_DEST_ATTR_WEIGHT: weight,
      IPVS_DEST_ATTR_U_THRESH: 0,
      IPVS_DEST_ATTR_L_THRESH: 0,
    },
  });
}

function describe(key: VirtualServerKey, address: IpAddress, port: number): string {
  return `destination ${formatIpPort(address, port)} of ${describeVirtualServer(key)}`;
}
