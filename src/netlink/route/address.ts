import { formatIp, type IpAddress, type IpFamily, ipEquals, isLoopback, lastOf } from '../../core/index.ts';
import { checkPrefixLength, decodeIp, familyNumber, ipFamilyOf } from '../address-family.ts';
import type { Attribute } from '../attribute.ts';
import { encodeBody } from '../attribute-set.ts';
import { decodeError } from '../decode-error.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { IFA, IFA_F_NODAD, ifaddrmsg } from '../uapi/if-addr.ts';
import { NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE } from '../uapi/netlink.ts';
import {
  AF_UNSPEC,
  RT_SCOPE_HOST,
  RT_SCOPE_UNIVERSE,
  RTM_DELADDR,
  RTM_GETADDR,
  RTM_NEWADDR,
} from '../uapi/rtnetlink.ts';

/** An address of an interface as the kernel describes it. */
export interface InterfaceAddress {
  /** Index of the link. */
  readonly index: number;
  readonly address: IpAddress;
  readonly prefixLength: number;
  /** The far end of a point-to-point address; undefined for ordinary ones. */
  readonly peer: IpAddress | undefined;
  readonly broadcast: IpAddress | undefined;
  /** IFA_F_*. */
  readonly flags: number;
  /** RT_SCOPE_*. */
  readonly scope: number;
  /** IPv4 only; '' otherwise. */
  readonly label: string;
  /** Attributes we have no name for. */
  readonly unknown: readonly Attribute[];
}

/** An address to give to a link. */
export interface AddressSpec {
  /** Index of the link. */
  readonly index: number;
  readonly address: IpAddress;
  readonly prefixLength: number;
  /** Usable at once, without duplicate address detection, which holds an address back for a second. @default IPv6: true */
  readonly noDad?: boolean | undefined;
  /** Change the address when it is there already, instead of EEXIST. @default false */
  readonly replace?: boolean | undefined;
}

/** Adds an address. IPv4 gets its broadcast address when the prefix leaves room for one (RFC 3021). */
export function newAddress(spec: AddressSpec): NetlinkRequest {
  const { address } = spec;
  const isIpv4 = address.family === 'IPv4';
  return {
    type: RTM_NEWADDR,
    flags: NLM_F_CREATE | (spec.replace ? NLM_F_REPLACE : NLM_F_EXCL),
    operation: 'RTM_NEWADDR',
    object: describeAddress(spec),
    payload: encodeBody(
      ifaddrmsg,
      {
        ifa_family: familyNumber(address.family),
        ifa_prefixlen: spec.prefixLength,
        ifa_flags: (spec.noDad ?? !isIpv4) ? IFA_F_NODAD : 0,
        ifa_scope: isIpv4 && isLoopback(address) ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
        ifa_index: spec.index,
      },
      IFA,
      {
        IFA_LOCAL: address.bytes,
        IFA_ADDRESS: address.bytes,
        IFA_BROADCAST: isIpv4 && spec.prefixLength < 31 ? lastOf(spec).bytes : undefined,
      },
    ),
  };
}

/**
 * Removes an address; the prefix length must match. EADDRNOTAVAIL when it is not there (`isNotFound`).
 *
 * The first IPv4 address of a subnet takes the others of that subnet with it unless net/ipv4/conf/.../promote_secondaries
 * is 1.
 */
export function deleteAddress(spec: Pick<AddressSpec, 'index' | 'address' | 'prefixLength'>): NetlinkRequest {
  return {
    type: RTM_DELADDR,
    flags: 0,
    operation: 'RTM_DELADDR',
    object: describeAddress(spec),
    payload: encodeBody(
      ifaddrmsg,
      {
        ifa_family: familyNumber(spec.address.family),
        ifa_prefixlen: spec.prefixLength,
        ifa_index: spec.index,
      },
      IFA,
      { IFA_LOCAL: spec.address.bytes, IFA_ADDRESS: spec.address.bytes },
    ),
  };
}

/** What to list; what is left out does not restrict. */
export interface AddressFilter {
  readonly index?: number | undefined;
  readonly family?: IpFamily | undefined;
  /** A `peerNetnsId`: of links in the namespace that has this number in the socket's (Linux 4.20). @default the socket's own */
  readonly netnsId?: number | undefined;
}

/**
 * The addresses of the socket's namespace, each once. While others come and go without a pause, one that has just gone may
 * be among them. Throws KernelError, ERR_NETLINK_DECODE.
 */
export function listAddresses(netlink: Netlink, filter: AddressFilter = {}): InterfaceAddress[] {
  const addresses = netlink
    .dumpChanging(addressListing(filter))
    .filter((payload) => ipFamilyOf(ifaddrmsg.decode(payload).ifa_family) !== undefined)
    .map(decodeAddress);
  return [...new Map(addresses.map((one) => [`${describeAddress(one)} ${formatPeer(one)}`, one])).values()];
}

/** An interface may have an address several times, towards different far ends. */
function formatPeer({ peer }: InterfaceAddress): string {
  return peer ? formatIp(peer) : '';
}

/** The request behind `listAddresses`. */
export function addressListing(filter: AddressFilter): NetlinkRequest {
  return {
    type: RTM_GETADDR,
    flags: 0,
    operation: 'RTM_GETADDR',
    object: filter.index === undefined ? 'all addresses' : `addresses of link ${filter.index}`,
    payload: encodeBody(
      ifaddrmsg,
      { ifa_family: filter.family ? familyNumber(filter.family) : AF_UNSPEC, ifa_index: filter.index ?? 0 },
      IFA,
      { IFA_TARGET_NETNSID: filter.netnsId },
    ),
  };
}

/** Decodes the payload of an RTM_NEWADDR of IPv4 or IPv6. Throws ERR_NETLINK_DECODE. */
export function decodeAddress(payload: Uint8Array): InterfaceAddress {
  const header = ifaddrmsg.decode(payload);
  const family = ipFamilyOf(header.ifa_family);
  if (!family) throw decodeError('RTM_NEWADDR', `family ${header.ifa_family} is neither IPv4 nor IPv6`);
  const attributes = IFA.decode(payload, ifaddrmsg.size);
  const ip = (name: 'IFA_ADDRESS' | 'IFA_LOCAL' | 'IFA_BROADCAST') =>
    attributes[name] && decodeIp(family, attributes[name], name);
  // IFA_ADDRESS is the far end when IFA_LOCAL is there and differs.
  const far = ip('IFA_ADDRESS');
  const address = ip('IFA_LOCAL') ?? far;
  if (!address) throw decodeError('RTM_NEWADDR', 'it has neither IFA_LOCAL nor IFA_ADDRESS');
  return {
    index: header.ifa_index,
    address,
    prefixLength: checkPrefixLength(family, header.ifa_prefixlen, 'ifa_prefixlen'),
    peer: far && !ipEquals(far, address) ? far : undefined,
    broadcast: ip('IFA_BROADCAST'),
    flags: attributes.IFA_FLAGS ?? header.ifa_flags,
    scope: header.ifa_scope,
    label: attributes.IFA_LABEL ?? '',
    unknown: attributes.unknown,
  };
}

function describeAddress(spec: Pick<AddressSpec, 'index' | 'address' | 'prefixLength'>): string {
  return `${formatIp(spec.address)}/${spec.prefixLength} on link ${spec.index}`;
}
