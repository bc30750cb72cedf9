import {
  addressBits,
  type Cidr,
  cidrContains,
  cidrEquals,
  cidrsOverlap,
  formatCidr,
  formatIp,
  type IpAddress,
  type IpFamily,
  ipEquals,
  sameBytes,
  specialRange,
} from '../../core/index.ts';
import { createdAtOf, internalIpOf, type Node, podRangesOf } from '../../kube/index.ts';
import { readFlannelGateway, readFlannelVtep } from '../flannel/annotations.ts';
import { readWireguardIdentity, sameIdentity, type WireguardIdentity } from '../wireguard/identity.ts';
import { readFormerRanges } from './former-ranges.ts';
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
  /** Those that it says it had before, of which pods still live. */
  readonly formerRanges: readonly Cidr[];
  /** The MAC address of its VXLAN device, if it has one. */
  readonly mac: Uint8Array;
  /** The one that flannel says it has; undefined: its name tells. */
  readonly flannelMac: Uint8Array | undefined;
  /** Undefined: it has told no key. */
  readonly wireguard: WireguardIdentity | undefined;
}

/** Its MAC address is worked out when somebody asks: without a tunnel nobody does, of thousands. */
class ReadPeer implements Peer {
  readonly name: string;
  readonly createdAt: number;
  readonly address: IpAddress;
  readonly ranges: readonly Cidr[];
  readonly formerRanges: readonly Cidr[];
  readonly flannelMac: Uint8Array | undefined;
  readonly wireguard: WireguardIdentity | undefined;
  readonly #vni: number;
  #mac: Uint8Array | undefined;

  constructor(
    { name, createdAt, address, ranges, formerRanges, flannelMac, wireguard }: Omit<Peer, 'mac'>,
    vni: number,
  ) {
    this.name = name;
    this.createdAt = createdAt;
    this.address = address;
    this.ranges = ranges;
    this.formerRanges = formerRanges;
    this.flannelMac = flannelMac;
    this.wireguard = wireguard;
    this.#vni = vni;
    this.#mac = flannelMac;
  }

  get mac(): Uint8Array {
    this.#mac ??= vtepMac(this.name, this.#vni, this.address.family);
    return this.#mac;
  }
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
  const gateway = own ? undefined : readFlannelGateway(annotations, family);
  if (gateway && 'problem' in gateway) return gateway;
  const publicIp = own ? own.address : (flannel ?? gateway)?.publicIp;
  const address = publicIp ?? internalIpOf(node, family);
  if (!address) return { problem: `it has pods of ${family} but no InternalIP of ${family}` };
  const problem = objectionTo(address, ranges);
  if (problem !== undefined) return { problem };
  const createdAt = createdAtOf(creationTimestamp);
  const wireguard = readWireguardIdentity(annotations);
  const formerRanges = own ? [] : readFormerRanges(annotations, family);
  return {
    peer: new ReadPeer({ name, createdAt, address, ranges, formerRanges, flannelMac: flannel?.mac, wireguard }, vni),
  };
}

/** Whether two readings of one Node are the same. */
export function samePeer(a: Peer, b: Peer): boolean {
  return (
    a.createdAt === b.createdAt &&
    ipEquals(a.address, b.address) &&
    sameBytes(a.flannelMac, b.flannelMac) &&
    sameIdentity(a.wireguard, b.wireguard) &&
    sameRanges(a.ranges, b.ranges) &&
    sameRanges(a.formerRanges, b.formerRanges)
  );
}

/** The same ranges in the same order. */
export function sameRanges(a: readonly Cidr[], b: readonly Cidr[]): boolean {
  return a.length === b.length && a.every((range, index) => cidrEquals(range, b[index]!));
}

/** What is wrong with a node whatever others there are. */
function objectionTo(address: IpAddress, ranges: readonly Cidr[]): string | undefined {
  const special = specialRange(address);
  if (special) return `its address ${formatIp(address)} is ${special}`;
  if (ranges.length > LIMITS.rangesOfPeer) {
    return `it has ${ranges.length} pod CIDRs, more than ${LIMITS.rangesOfPeer}`;
  }
  for (let index = 0; index < ranges.length; index++) {
    const range = ranges[index]!;
    if (cidrContains(range, address)) {
      return `its pod CIDR ${formatCidr(range)} contains its own address ${formatIp(address)}`;
    }
    const twice = index === 0 ? undefined : ranges.slice(0, index).find((other) => cidrsOverlap(range, other));
    if (twice) return `its pod CIDRs ${formatCidr(twice)} and ${formatCidr(range)} overlap`;
    if (range.prefixLength === addressBits(range.address.family)) {
      return `its pod CIDR ${formatCidr(range)} has room for no pod`;
    }
  }
  return undefined;
}
