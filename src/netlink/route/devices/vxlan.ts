import { formatIp, type IpAddress } from '../../../core/index.ts';
import { decodeIp } from '../../address-family.ts';
import type { Attribute } from '../../attribute.ts';
import { encodeBody, encodeNest } from '../../attribute-set.ts';
import { flagValue } from '../../integer.ts';
import type { NetlinkRequest } from '../../message.ts';
import { IFF_UP } from '../../uapi/if.ts';
import { IFLA, IFLA_VXLAN } from '../../uapi/if-link.ts';
import { NLM_F_CREATE, NLM_F_EXCL } from '../../uapi/netlink.ts';
import { ifinfomsg, RTM_NEWLINK } from '../../uapi/rtnetlink.ts';

/** What can be changed of a VXLAN device while it carries traffic; what is left out stays, or gets the kernel's default. */
export interface VxlanChange {
  /** Index of the link outer packets leave by, with which the device goes. @default none, whatever the routes say */
  readonly link?: number | undefined;
  /** Source of outer packets, and the only address where they are taken in. @default any */
  readonly local?: IpAddress | undefined;
  /** Learn from received frames where a MAC lives. */
  readonly learning?: boolean | undefined;
  /** Of outer packets; 0 for the system's default. @default 0 */
  readonly ttl?: number | undefined;
}

/** A VXLAN device to make. */
export interface VxlanSpec extends VxlanChange {
  /** At most 15 bytes. */
  readonly name: string;
  /** Six bytes. Given at creation it stays as it is, while udev replaces one that the kernel has drawn. */
  readonly mac: Uint8Array;
  /** The network's number, below 2^24. */
  readonly vni: number;
  /** UDP port, the device's own and that of its peers. */
  readonly port: number;
  /** @default false */
  readonly learning?: boolean | undefined;
  /**
   * The kernel lowers it to that of `link` less 50 bytes (IPv4) or 70 (IPv6), and refuses to raise it above later. It does not
   * follow that of `link`. @default that, or 1500 without `link`
   */
  readonly mtu?: number | undefined;
  /** @default false */
  readonly up?: boolean | undefined;
}

/** The properties of a VXLAN device, as the kernel describes them. */
export interface Vxlan {
  readonly vni: number;
  readonly port: number;
  /** Index of the link outer packets leave by; 0 for none. */
  readonly link: number;
  readonly local: IpAddress | undefined;
  /** Where frames go whose destination the FDB does not know: a multicast group, or a host. */
  readonly remote: IpAddress | undefined;
  readonly learning: boolean;
  readonly ttl: number;
  /** Group based policy: marks travel along (GBP). */
  readonly groupPolicy: boolean;
  /** One device for all networks; each packet says which (`external`). */
  readonly metadata: boolean;
  /**
   * All that is otherwise than in a device made with `newVxlan` from what it asks for, in words of `ip link`: `tos 4`,
   * `remote 192.0.2.9`.
   */
  readonly additions: readonly string[];
  /** Attributes we have no name for. */
  readonly unknown: readonly Attribute[];
}

/**
 * Makes a VXLAN device. EEXIST when the name is taken, or VNI and port by another device with the same link;
 * EOPNOTSUPP (`isUnsupported`) on a kernel without the module vxlan.
 */
export function newVxlan(spec: VxlanSpec): NetlinkRequest {
  return {
    type: RTM_NEWLINK,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    operation: 'RTM_NEWLINK',
    object: `VXLAN ${spec.vni} at port ${spec.port} "${spec.name}"`,
    payload: encodeBody(ifinfomsg, spec.up ? { ifi_flags: IFF_UP, ifi_change: IFF_UP } : {}, IFLA, {
      IFLA_ADDRESS: spec.mac,
      IFLA_MTU: spec.mtu,
      IFLA_IFNAME: spec.name,
      IFLA_LINKINFO: {
        IFLA_INFO_KIND: 'vxlan',
        IFLA_INFO_DATA: encodeVxlan({ ...spec, learning: spec.learning ?? false }),
      },
    }),
  };
}

/**
 * Changes a VXLAN device in place; MAC and MTU are a matter of `setLink`. EINVAL for a local address of the other family. VNI
 * and port stay for life.
 */
export function setVxlan(index: number, change: VxlanChange): NetlinkRequest {
  return {
    // The kernel changes what a kind defines in this request alone; without NLM_F_CREATE it makes nothing.
    type: RTM_NEWLINK,
    flags: 0,
    operation: 'RTM_NEWLINK',
    object: `VXLAN device ${index}`,
    payload: encodeBody(ifinfomsg, { ifi_index: index }, IFLA, {
      IFLA_LINKINFO: { IFLA_INFO_KIND: 'vxlan', IFLA_INFO_DATA: encodeVxlan(change) },
    }),
  };
}

/** Decodes the IFLA_INFO_DATA of a link of kind `vxlan`. Throws ERR_NETLINK_DECODE. */
export function decodeVxlan(data: Uint8Array): Vxlan {
  const attributes = IFLA_VXLAN.decode(data);
  const ip = (name: 'LOCAL' | 'GROUP') => {
    const [ipv4, ipv6] = [attributes[`IFLA_VXLAN_${name}`], attributes[`IFLA_VXLAN_${name}6`]];
    if (ipv4) return decodeIp('IPv4', ipv4, `IFLA_VXLAN_${name}`);
    return ipv6 && decodeIp('IPv6', ipv6, `IFLA_VXLAN_${name}6`);
  };
  return {
    vni: attributes.IFLA_VXLAN_ID ?? 0,
    port: attributes.IFLA_VXLAN_PORT ?? 0,
    link: attributes.IFLA_VXLAN_LINK ?? 0,
    local: ip('LOCAL'),
    remote: ip('GROUP'),
    learning: attributes.IFLA_VXLAN_LEARNING === 1,
    ttl: attributes.IFLA_VXLAN_TTL ?? 0,
    groupPolicy: attributes.IFLA_VXLAN_GBP !== undefined,
    metadata: attributes.IFLA_VXLAN_COLLECT_METADATA === 1,
    additions: additionsOf(attributes, ip('GROUP')),
    unknown: attributes.unknown,
  };
}

function encodeVxlan(spec: Partial<VxlanSpec>): Uint8Array {
  const { local } = spec;
  return encodeNest(IFLA_VXLAN, {
    IFLA_VXLAN_LINK: spec.link,
    IFLA_VXLAN_TTL: spec.ttl,
    IFLA_VXLAN_ID: spec.vni,
    IFLA_VXLAN_LOCAL: local?.family === 'IPv4' ? local.bytes : undefined,
    IFLA_VXLAN_LOCAL6: local?.family === 'IPv6' ? local.bytes : undefined,
    IFLA_VXLAN_LEARNING: flagValue(spec.learning),
    IFLA_VXLAN_PORT: spec.port,
  });
}

function additionsOf(
  attributes: ReturnType<typeof IFLA_VXLAN.decode>,
  remote: IpAddress | undefined,
): readonly string[] {
  const numbers = {
    tos: attributes.IFLA_VXLAN_TOS,
    df: attributes.IFLA_VXLAN_DF,
    flowlabel: attributes.IFLA_VXLAN_LABEL,
    maxaddress: attributes.IFLA_VXLAN_LIMIT,
  };
  const flags = {
    'ttl inherit': attributes.IFLA_VXLAN_TTL_INHERIT === 1,
    proxy: attributes.IFLA_VXLAN_PROXY === 1,
    rsc: attributes.IFLA_VXLAN_RSC === 1,
    external: attributes.IFLA_VXLAN_COLLECT_METADATA === 1,
    vnifilter: attributes.IFLA_VXLAN_VNIFILTER === 1,
    gbp: attributes.IFLA_VXLAN_GBP !== undefined,
    gpe: attributes.IFLA_VXLAN_GPE !== undefined,
    remcsumtx: attributes.IFLA_VXLAN_REMCSUM_TX === 1,
    remcsumrx: attributes.IFLA_VXLAN_REMCSUM_RX === 1,
    udp6zerocsumtx: attributes.IFLA_VXLAN_UDP_ZERO_CSUM6_TX === 1,
    udp6zerocsumrx: attributes.IFLA_VXLAN_UDP_ZERO_CSUM6_RX === 1,
    nolocalbypass: attributes.IFLA_VXLAN_LOCALBYPASS === 0,
  };
  return [
    ...(remote ? [`remote ${formatIp(remote)}`] : []),
    ...Object.entries(numbers).flatMap(([word, value]) => (value ? [`${word} ${value}`] : [])),
    ...Object.entries(flags).flatMap(([word, isSet]) => (isSet ? [word] : [])),
  ];
}
