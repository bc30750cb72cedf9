import {
  ByteWriter,
  formatIpPort,
  type IpAddress,
  type IpFamily,
  ipProtocolName,
  prefixMask,
  readU32,
} from '../../core/index.ts';
import { familyNumber, ipFamilyOf } from '../address-family.ts';
import type { AttributeValues, DecodedAttributes } from '../attribute-set.ts';
import { decodeError } from '../decode-error.ts';
import type { NetlinkRequest } from '../message.ts';
import { genlmsghdr } from '../uapi/genetlink.ts';
import {
  IP_VS_SVC_F_HASHED,
  IP_VS_SVC_F_PERSISTENT,
  IPVS_CMD_ATTRIBUTES,
  type IPVS_SVC,
  ip_vs_flags,
} from '../uapi/ip-vs.ts';
import { decodeInetAddress, encodeInetAddress } from './inet-address.ts';
import { type IpvsFamily, ipvsRequest } from './ipvs-request.ts';
import { decodeStatistics, type IpvsStatistics, NO_STATISTICS } from './statistics.ts';

/** What packets belong to a virtual server: those to an address and port, or those with a firewall mark. */
export type VirtualServerKey =
  | {
      readonly kind: 'address';
      /** IPPROTO_*. */
      readonly protocol: number;
      readonly address: IpAddress;
      /** 0: every port, with persistence only. */
      readonly port: number;
    }
  | { readonly kind: 'mark'; readonly family: IpFamily; readonly mark: number };

/** A virtual server. */
export interface VirtualServer {
  readonly key: VirtualServerKey;
  /** `rr`, `mh`, …: the module ip_vs_<name>. */
  readonly scheduler: string;
  /** IP_VS_SVC_F_*, those of persistence and of being hashed excepted. */
  readonly flags: number;
  /** A client stays with its destination for this long after its last connection; 0: no persistence. */
  readonly persistenceSeconds: number;
  /** Clients whose addresses have these bits in common stay with one destination (`ipvsadm -M`). @default each by itself */
  readonly persistenceMask?: Uint8Array;
}

/** A virtual server as the kernel lists it. */
export interface ListedVirtualServer extends VirtualServer {
  readonly statistics: IpvsStatistics;
}

/** Adds a virtual server. EEXIST when it is there; ENOENT when there is no such scheduler. */
export function newVirtualServer(family: IpvsFamily, server: VirtualServer): NetlinkRequest {
  return serverRequest(family, 'IPVS_CMD_NEW_SERVICE', server);
}

/** Changes scheduler, flags and persistence of a virtual server. ESRCH when there is none. */
export function setVirtualServer(family: IpvsFamily, server: VirtualServer): NetlinkRequest {
  return serverRequest(family, 'IPVS_CMD_SET_SERVICE', server);
}

/** Removes a virtual server with its destinations; its connections end with their next packet. ESRCH when there is none. */
export function deleteVirtualServer(family: IpvsFamily, key: VirtualServerKey): NetlinkRequest {
  return ipvsRequest(family, 'IPVS_CMD_DEL_SERVICE', describeVirtualServer(key), {
    IPVS_CMD_ATTR_SERVICE: keyAttributes(key),
  });
}

/** To be dumped: all virtual servers of the namespace, of both families. */
export function virtualServerListing(family: IpvsFamily): NetlinkRequest {
  return ipvsRequest(family, 'IPVS_CMD_GET_SERVICE', 'all virtual servers', {});
}

/** Decodes one answer to `virtualServerListing`. Throws ERR_NETLINK_DECODE. */
export function decodeVirtualServer(payload: Uint8Array): ListedVirtualServer {
  genlmsghdr.decode(payload);
  const service = IPVS_CMD_ATTRIBUTES.decode(payload, genlmsghdr.size).IPVS_CMD_ATTR_SERVICE;
  if (!service) throw decodeError('IPVS_CMD_NEW_SERVICE', 'it has no IPVS_CMD_ATTR_SERVICE');
  const { flags } = ip_vs_flags.decode(service.IPVS_SVC_ATTR_FLAGS ?? new Uint8Array());
  const persistent = (flags & IP_VS_SVC_F_PERSISTENT) !== 0;
  const statistics = service.IPVS_SVC_ATTR_STATS64;
  const key = decodeKey(service);
  const mask = persistent ? maskOf(service.IPVS_SVC_ATTR_NETMASK, familyOf(key)) : undefined;
  return {
    key,
    scheduler: service.IPVS_SVC_ATTR_SCHED_NAME ?? '',
    flags: flags & ~(IP_VS_SVC_F_PERSISTENT | IP_VS_SVC_F_HASHED),
    persistenceSeconds: persistent ? (service.IPVS_SVC_ATTR_TIMEOUT ?? 0) : 0,
    ...(mask && { persistenceMask: mask }),
    statistics: statistics ? decodeStatistics(statistics) : NO_STATISTICS,
  };
}

/** `virtual server 10.96.0.1:443/TCP`, for errors. */
export function describeVirtualServer(key: VirtualServerKey): string {
  if (key.kind === 'mark') return `virtual server of ${key.family} mark 0x${key.mark.toString(16)}`;
  const protocol = ipProtocolName(key.protocol) ?? `protocol ${key.protocol}`;
  return `virtual server ${formatIpPort(key.address, key.port)}/${protocol}`;
}

/** The attributes that name a virtual server. */
export function keyAttributes(key: VirtualServerKey): AttributeValues<(typeof IPVS_SVC)['declarations']> {
  if (key.kind === 'mark') {
    return { IPVS_SVC_ATTR_AF: familyNumber(key.family), IPVS_SVC_ATTR_FWMARK: key.mark };
  }
  return {
    IPVS_SVC_ATTR_AF: familyNumber(key.address.family),
    IPVS_SVC_ATTR_PROTOCOL: key.protocol,
    IPVS_SVC_ATTR_ADDR: encodeInetAddress(key.address),
    IPVS_SVC_ATTR_PORT: key.port,
  };
}

/** Persistence by single addresses: all bits of the mask, or the prefix length. */
const NETMASK: Readonly<Record<IpFamily, number>> = { IPv4: 0xffff_ffff, IPv6: 128 };

function serverRequest(
  family: IpvsFamily,
  operation: 'IPVS_CMD_NEW_SERVICE' | 'IPVS_CMD_SET_SERVICE',
  { key, scheduler, flags, persistenceSeconds, persistenceMask }: VirtualServer,
): NetlinkRequest {
  const writer = new ByteWriter(ip_vs_flags.size);
  const persistence = persistenceSeconds > 0 ? IP_VS_SVC_F_PERSISTENT : 0;
  ip_vs_flags.encode(writer, { flags: flags | persistence, mask: 0xffff_ffff });
  return ipvsRequest(family, operation, `${describeVirtualServer(key)} (${scheduler})`, {
    IPVS_CMD_ATTR_SERVICE: {
      ...keyAttributes(key),
      IPVS_SVC_ATTR_SCHED_NAME: scheduler,
      IPVS_SVC_ATTR_FLAGS: writer.written(),
      IPVS_SVC_ATTR_TIMEOUT: persistenceSeconds,
      IPVS_SVC_ATTR_NETMASK: persistenceMask ? netmaskOf(persistenceMask, familyOf(key)) : NETMASK[familyOf(key)],
    },
  });
}

/** The family of a virtual server. */
export function familyOf(key: VirtualServerKey): IpFamily {
  return key.kind === 'mark' ? key.family : key.address.family;
}

/** Of persistence. Undefined: all bits. */
function maskOf(netmask: number | undefined, family: IpFamily): Uint8Array | undefined {
  if (netmask === undefined || netmask === NETMASK[family]) return undefined;
  if (family === 'IPv4') return new Uint8Array(Uint32Array.of(netmask).buffer);
  return prefixMask(family, netmask);
}

/** What `maskOf` decodes. */
function netmaskOf(mask: Uint8Array, family: IpFamily): number {
  if (family === 'IPv4') return readU32(mask, 0);
  return mask.reduce((bits, byte) => bits + (byte === 0 ? 0 : Math.clz32(~(byte << 24))), 0);
}

function decodeKey(service: DecodedAttributes<(typeof IPVS_SVC)['declarations']>): VirtualServerKey {
  const number = service.IPVS_SVC_ATTR_AF;
  const family = number === undefined ? undefined : ipFamilyOf(number);
  if (!family) throw decodeError('IPVS_SVC_ATTR_AF', `family ${number} is neither IPv4 nor IPv6`);
  if (service.IPVS_SVC_ATTR_FWMARK) return { kind: 'mark', family, mark: service.IPVS_SVC_ATTR_FWMARK };
  const { IPVS_SVC_ATTR_PROTOCOL: protocol, IPVS_SVC_ATTR_ADDR: address, IPVS_SVC_ATTR_PORT: port } = service;
  if (protocol === undefined || address === undefined || port === undefined) {
    throw decodeError('IPVS_CMD_ATTR_SERVICE', 'it has neither a mark nor protocol, address and port');
  }
  return { kind: 'address', protocol, address: decodeInetAddress(family, address, 'IPVS_SVC_ATTR_ADDR'), port };
}
