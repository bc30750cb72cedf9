import { type Cidr, formatCidr, formatIp, type IpAddress, type IpFamily, parseCidr } from '../../core/index.ts';
import { type Node, WIREGUARD_ANNOTATIONS } from '../../kube/index.ts';
import type { WireguardIdentity } from '../wireguard/identity.ts';
import { blockOf, keySpan, macSpan, spanOf } from './address-span.ts';
import { type Claimant, Claims, type Span } from './claims.ts';
import { isPodRange } from './former-ranges.ts';
import { type Peer, readPeer, samePeer } from './peer.ts';
import { type RouteSettings, type TunnelKind, tunnelKind } from './tunnel.ts';
import { isOnLink, type Underlay } from './underlay.ts';

/** How the pods of one other node are to be reached. */
export type PeerPlan =
  /** By the node itself, which is on the same link. */
  | { readonly kind: 'direct'; readonly gateway: IpAddress; readonly ranges: readonly Cidr[] }
  /** Through the VXLAN device. */
  | {
      readonly kind: 'tunnel';
      /** Stands for the node inside the tunnel: the first address of its first range. */
      readonly gateway: IpAddress;
      /** The node's VXLAN device. */
      readonly mac: Uint8Array;
      /** Where the node is. */
      readonly remote: IpAddress;
      readonly ranges: readonly Cidr[];
    }
  /** Through the WireGuard device, which knows the node by its key. */
  | ({
      readonly kind: 'wireguard';
      /** Where the node is. */
      readonly remote: IpAddress;
      readonly ranges: readonly Cidr[];
    } & WireguardIdentity);

/** A Node to whose pods there are no routes. */
export interface LeftOutPeer {
  readonly name: string;
  /** In words, with what to do where that is not obvious. */
  readonly reason: string;
}

/** This node, in one family. */
export interface OwnNode {
  readonly underlay: Underlay;
  readonly ranges: readonly Cidr[];
  /** Of its VXLAN device. */
  readonly mac: Uint8Array;
  /** The public key of its WireGuard device, if it has one. */
  readonly wireguardKey?: Uint8Array | undefined;
  /** The ranges of ClusterIPs. */
  readonly serviceRanges: readonly Cidr[];
}

/** What is never a pod's address, nor a node's (RFC 6890). */
const SPECIAL: Readonly<Record<IpFamily, readonly string[]>> = {
  IPv4: ['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3'],
  IPv6: ['::/8', 'fe80::/10', 'ff00::/8'],
};

/**
 * Works out how each other node's pods are reached, in one family. Pure: from Node objects and what is known about this node to
 * plans. The work of an event depends on the Nodes that want the same addresses, not on how many there are.
 */
export class RoutePlanner {
  readonly #family: IpFamily;
  readonly #nodeName: string;
  readonly #settings: RouteSettings;
  readonly #tunnel: TunnelKind | undefined;
  readonly #peers = new Map<string, Peer>();
  /** By name, why a Node cannot be used whatever others there are. */
  readonly #problems = new Map<string, string>();
  readonly #claims = new Claims();
  #own: OwnNode | undefined;

  constructor(family: IpFamily, nodeName: string, settings: RouteSettings) {
    this.#family = family;
    this.#nodeName = nodeName;
    this.#settings = settings;
    this.#tunnel = tunnelKind(settings);
  }

  /** A Node came or changed. Returns the names of the Nodes whose plan may be another one now. */
  nodeChanged(node: Node): readonly string[] {
    const { name } = node.metadata;
    if (name === this.#nodeName) return NOTHING;
    const reading = readPeer(node, this.#family, this.#settings.vni);
    if (reading === undefined) return this.nodeRemoved(name);
    if ('problem' in reading) {
      const touched = this.nodeRemoved(name);
      this.#problems.set(name, reading.problem);
      return touched.includes(name) ? touched : [...touched, name];
    }
    const { peer } = reading;
    const known = this.#peers.get(name);
    if (known && samePeer(known, peer)) return NOTHING;
    this.#problems.delete(name);
    this.#peers.set(name, peer);
    const touched = [...this.#forgetFormer(known), ...this.#claims.set(this.#claimantOf(peer))];
    for (const range of this.#formerOf(peer)) touched.push(...this.#claims.set(this.#formerClaimant(peer, range)));
    return nodesOf(touched);
  }

  /** A Node went. Returns the names of the Nodes whose plan may be another one now. */
  nodeRemoved(name: string): readonly string[] {
    const hadProblem = this.#problems.delete(name);
    const peer = this.#peers.get(name);
    if (!peer) return hadProblem ? [name] : NOTHING;
    this.#peers.delete(name);
    return nodesOf([...this.#forgetFormer(peer), ...this.#claims.remove(name), name]);
  }

  /** This node changed: every plan may be another one. */
  setOwn(own: OwnNode): void {
    this.#own = own;
    this.#claims.reserve([
      ...SPECIAL[this.#family].map((range) => spanOf(parseCidr(range), 'reserved range')),
      spanOf(blockOf(own.underlay.address), 'address of this node'),
      ...own.ranges.map((range) => spanOf(range, 'pod CIDR of this node')),
      ...own.serviceRanges.map((range) => spanOf(range, 'Service range')),
      ...(this.#tunnel === 'vxlan' ? [macSpan(own.mac, 'MAC address of this node')] : []),
      ...(own.wireguardKey ? [keySpan(own.wireguardKey, 'WireGuard key of this node')] : []),
    ]);
  }

  /** The names of all other Nodes that have pods of this family, also of those that cannot be used. */
  *names(): Iterable<string> {
    yield* this.#peers.keys();
    yield* this.#problems.keys();
  }

  /** Whether it is one of `names`. */
  knows(name: string): boolean {
    return this.#peers.has(name) || this.#problems.has(name);
  }

  /** Undefined: there are no routes to this Node's pods. */
  planOf(name: string): PeerPlan | undefined {
    const peer = this.#peers.get(name);
    if (!peer || !this.#own || this.#claims.refusalOf(name) !== undefined) return undefined;
    const { address, mac, wireguard } = peer;
    const ranges = this.#rangesOf(peer);
    const { mode } = this.#settings;
    const mayBeDirect = mode === 'host-gw' || mode === 'auto';
    if (mayBeDirect && isOnLink(address, this.#own.underlay)) return { kind: 'direct', gateway: address, ranges };
    switch (this.#tunnel) {
      case undefined:
        return undefined;
      case 'vxlan':
        return { kind: 'tunnel', gateway: ranges[0]!.address, mac, remote: address, ranges };
      case 'wireguard':
        return wireguard && { kind: 'wireguard', remote: address, ranges, ...wireguard };
    }
  }

  /** Why there are no routes to a Node's pods although it has some; undefined: there are, or there is no such Node. */
  objectionTo(name: string): string | undefined {
    const objection = this.#problems.get(name) ?? this.#claims.refusalOf(name);
    if (objection !== undefined) return objection;
    const peer = this.#peers.get(name);
    if (!peer || !this.#own || this.planOf(name)) return undefined;
    if (this.#tunnel === 'wireguard') return NO_KEY;
    const { underlay } = this.#own;
    return `its address ${formatIp(peer.address)} is not on the link of "${underlay.name}", which --routes=host-gw needs; use auto or vxlan`;
  }

  /** Of its present ranges and those of before what it has. */
  #rangesOf(peer: Peer): readonly Cidr[] {
    const { name, ranges } = peer;
    const former = this.#formerOf(peer);
    if (former.length === 0) return ranges;
    return [...ranges, ...former.filter((range) => this.#claims.refusalOf(formerName(name, range)) === undefined)];
  }

  #formerOf({ formerRanges }: Peer): readonly Cidr[] {
    if (formerRanges.length === 0) return formerRanges;
    const { podRanges = [] } = this.#settings;
    return formerRanges.filter((range) => isPodRange(range, podRanges));
  }

  #forgetFormer(peer: Peer | undefined): readonly string[] {
    if (!peer || peer.formerRanges.length === 0) return NOTHING;
    return this.#formerOf(peer).flatMap((range) => this.#claims.remove(formerName(peer.name, range)));
  }

  /** Behind every Node that has it by its Node object. */
  #formerClaimant(peer: Peer, range: Cidr): Claimant {
    const spans: Span[] = [];
    const claimant = { name: formerName(peer.name, range), createdAt: Number.POSITIVE_INFINITY, spans };
    spans.push(spanOf(range, 'former pod CIDR', claimant));
    return claimant;
  }

  #claimantOf(peer: Peer): Claimant {
    const { name, createdAt, address, ranges, wireguard } = peer;
    const spans: Span[] = [];
    const claimant = { name, createdAt, spans };
    spans.push(spanOf(blockOf(address), 'address', claimant));
    for (const range of ranges) spans.push(spanOf(range, 'pod CIDR', claimant));
    if (this.#tunnel === 'vxlan') spans.push(macSpan(peer.mac, 'MAC address', claimant));
    if (this.#tunnel === 'wireguard' && wireguard) {
      spans.push(keySpan(wireguard.publicKey, 'WireGuard key', claimant));
    }
    return claimant;
  }
}

const NOTHING: readonly string[] = [];

/** Comes after the name of every Node, and is none. */
const FORMER = '~';

function formerName(node: string, range: Cidr): string {
  return `${FORMER}${node} ${formatCidr(range)}`;
}

/** The Nodes that claimants stand for. */
function nodesOf(claimants: readonly string[]): readonly string[] {
  if (!claimants.some((name) => name.startsWith(FORMER))) return claimants;
  return [...new Set(claimants.map((name) => (name.startsWith(FORMER) ? name.slice(1, name.indexOf(' ')) : name)))];
}

const NO_KEY = `it tells no WireGuard key of its own (annotation ${WIREGUARD_ANNOTATIONS.publicKey}): look into the log of its agent, which has to run with the same --routes`;
