import {
  addressBits,
  type Cidr,
  cidrContains,
  formatCidr,
  formatIp,
  type IpAddress,
  type IpFamily,
  ipEquals,
  sameBytes,
  specialRange,
  tryParseCidr,
  tryParseIp,
} from '../../core/index.ts';
import type { Node } from '../../kube/index.ts';
import { readFlannelVtep } from '../flannel/annotations.ts';
import { readWireguardIdentity, sameIdentity, type WireguardIdentity } from '../wireguard/identity.ts';
import { LIMITS } from './limits.ts';
import { vtepMac } from './mac.ts';

/** Another node, in one family: where it is, and which pods it has. */
export interface Peer {
  readonly name: string;
  /** Milliseconds since 1970; Infinity when it is not known. */
  readonly createdAt: number;
  /** Where it takes packets for its pods: its InternalIP, or the one a flannel node names. */
  readonly address: IpAddress;
  /** The ranges of its pods: at least one, disjoint, without host bits. */
  readonly ranges: readonly Cidr[];
  /** The MAC address of its VXLAN device, if it has one. */
  readonly mac: Uint8Array;
  /** Undefined: it has told no key. */
  readonly wireguard: WireguardIdentity | undefined;
}

/** What a Node says, or why it cannot be used. */
export type PeerReading = { readonly peer: Peer } | { readonly problem: string };

/**
 * What a Node object says about one family.
 *
 * @param vni the VXLAN network of this cluster
 * @param own what counts in place of what the Node says, for this node's own; no ranges: those of the Node. Of what flannel says
 *   about this node the MAC address is kept, which others may know
 * @returns undefined: it has no pods of this family (yet)
 */
export function readPeer(
  node: Node,
  family: IpFamily,
  vni: number,
  own?: { readonly ranges: readonly Cidr[]; readonly address: IpAddress | undefined },
): PeerReading | undefined {
  const { name, creationTimestamp, annotations = {} } = node.metadata;
  const ranges = own?.ranges.length ? own.ranges : podRangesOf(node, family);
  if (ranges.length === 0) return undefined;
  const said = readFlannelVtep(annotations, family);
  const isUnusable = said && ('problem' in said || said.vni !== vni);
  const flannel = own && isUnusable ? undefined : said;
  if (flannel && 'problem' in flannel) return flannel;
  if (flannel && flannel.vni !== vni) {
    return {
      problem: `flannel uses VXLAN network ${flannel.vni} on it, this node ${vni}: set --routes-vni to the same`,
    };
  }
  const publicIp = own ? own.address : flannel?.publicIp;
  const address = publicIp ?? internalIpOf(node, family);
  if (!address) return { problem: `it has pods of ${family} but no InternalIP of ${family}` };
  const problem = objectionTo(address, ranges);
  if (problem !== undefined) return { problem };
  const createdAt = creationTimestamp === undefined ? Number.NaN : Date.parse(creationTimestamp);
  return {
    peer: {
      name,
      createdAt: Number.isNaN(createdAt) ? Number.POSITIVE_INFINITY : createdAt,
      address,
      ranges,
      mac: flannel?.mac ?? vtepMac(name, vni, family),
      wireguard: readWireguardIdentity(annotations),
    },
  };
}

/** The pod ranges of a Node in one family; what cannot be read is left out. */
export function podRangesOf({ spec }: Node, family: IpFamily): Cidr[] {
  const texts = spec?.podCIDRs ?? (spec?.podCIDR ? [spec.podCIDR] : []);
  return texts.flatMap((text) => tryParseCidr(text) ?? []).filter(({ address }) => address.family === family);
}

/** The first InternalIP of a family. */
export function internalIpOf({ status }: Node, family: IpFamily): IpAddress | undefined {
  for (const { type, address } of status?.addresses ?? []) {
    const ip = type === 'InternalIP' ? tryParseIp(address) : undefined;
    if (ip?.family === family) return ip;
  }
  return undefined;
}

export function samePeer(a: Peer, b: Peer): boolean {
  return (
    a.createdAt === b.createdAt &&
    ipEquals(a.address, b.address) &&
    sameBytes(a.mac, b.mac) &&
    sameIdentity(a.wireguard, b.wireguard) &&
    sameRanges(a.ranges, b.ranges)
  );
}

/** The same ranges in the same order. */
export function sameRanges(a: readonly Cidr[], b: readonly Cidr[]): boolean {
  return a.length === b.length && a.every((range, index) => sameCidr(range, b[index]!));
}

function sameCidr(a: Cidr, b: Cidr): boolean {
  return a.prefixLength === b.prefixLength && ipEquals(a.address, b.address);
}

/** What is wrong with a node whatever others there are. */
function objectionTo(address: IpAddress, ranges: readonly Cidr[]): string | undefined {
  const special = specialRange(address);
  if (special) return `its address ${formatIp(address)} is ${special}`;
  if (ranges.length > LIMITS.rangesOfPeer) {
    return `it has ${ranges.length} pod CIDRs, more than ${LIMITS.rangesOfPeer}`;
  }
  for (const [index, range] of ranges.entries()) {
    if (cidrContains(range, address)) {
      return `its pod CIDR ${formatCidr(range)} contains its own address ${formatIp(address)}`;
    }
    const twice = ranges.slice(0, index).find((other) => doOverlap(range, other));
    if (twice) return `its pod CIDRs ${formatCidr(twice)} and ${formatCidr(range)} overlap`;
    if (range.prefixLength === addressBits(range.address.family)) {
      return `its pod CIDR ${formatCidr(range)} has room for no pod`;
    }
  }
  return undefined;
}

function doOverlap(a: Cidr, b: Cidr): boolean {
  return cidrContains(a, b.address) || cidrContains(b, a.address);
}
