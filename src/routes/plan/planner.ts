import { type Cidr, formatCidr, formatIp, type IpAddress, type IpFamily, parseCidr } from '../../core/index.ts';
import { type Node, WIREGUARD_ANNOTATIONS } from '../../kube/index.ts';
import type { WireguardIdentity } from '../wireguard/identity.ts';
import { addressSpan, keySpan, macSpan, spanOf } from './address-span.ts';
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
  readonly #peers = new Map<string, ClaimingPeer>();
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
    if (known && samePeer(known.peer, peer)) return NOTHING;
    this.#problems.delete(name);
    const claiming = new ClaimingPeer(peer, this.#tunnel, this.#formerOf(peer));
    this.#peers.set(name, claiming);
    const freed = known ? this.#forgetFormer(known) : NOBODY;
    const decided = this.#claims.set(claiming, known);
    if (freed.length === 0 && claiming.former.length === 0) return nodesOf(decided);
    return nodesOf([...freed, ...decided, ...claiming.former.flatMap((former) => this.#claims.set(former))]);
  }

  /** A Node went. Returns the names of the Nodes whose plan may be another one now. */
  nodeRemoved(name: string): readonly string[] {
    const hadProblem = this.#problems.delete(name);
    const known = this.#peers.get(name);
    if (!known) return hadProblem ? [name] : NOTHING;
    this.#peers.delete(name);
    return nodesOf([...this.#forgetFormer(known), ...this.#claims.remove(known), known]);
  }

  /** This node changed: every plan may be another one. */
  setOwn(own: OwnNode): void {
    this.#own = own;
    this.#claims.reserve([
      ...SPECIAL[this.#family].map((range) => spanOf(parseCidr(range), 'reserved range')),
      addressSpan(own.underlay.address, 'address of this node'),
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
    const known = this.#peers.get(name);
    return known && this.#planOf(known);
  }

  /** The plans of all other Nodes to whose pods there are routes, by name. */
  plans(): Map<string, PeerPlan> {
    const plans = new Map<string, PeerPlan>();
    for (const known of this.#peers.values()) {
      const plan = this.#planOf(known);
      if (plan) plans.set(known.name, plan);
    }
    return plans;
  }

  #planOf(known: ClaimingPeer): PeerPlan | undefined {
    if (!this.#own || this.#claims.refusalOf(known) !== undefined) return undefined;
    const { peer } = known;
    const { address, wireguard } = peer;
    const ranges = this.#rangesOf(known);
    const { mode } = this.#settings;
    const mayBeDirect = mode === 'host-gw' || mode === 'auto';
    if (mayBeDirect && isOnLink(address, this.#own.underlay)) return { kind: 'direct', gateway: address, ranges };
    switch (this.#tunnel) {
      case undefined:
        return undefined;
      case 'vxlan':
        return { kind: 'tunnel', gateway: ranges[0]!.address, mac: peer.mac, remote: address, ranges };
      case 'wireguard':
        return wireguard && { kind: 'wireguard', remote: address, ranges, ...wireguard };
    }
  }

  /** Why there are no routes to a Node's pods although it has some; undefined: there are, or there is no such Node. */
  objectionTo(name: string): string | undefined {
    const known = this.#peers.get(name);
    const objection = this.#problems.get(name) ?? (known && this.#claims.refusalOf(known));
    if (objection !== undefined) return objection;
    if (!known || !this.#own || this.planOf(name)) return undefined;
    if (this.#tunnel === 'wireguard') return NO_KEY;
    const { underlay } = this.#own;
    return `its address ${formatIp(known.peer.address)} is not on the link of "${underlay.name}", which --routes=host-gw needs; use auto or vxlan`;
  }

  /** Of its present ranges and those of before what it has. */
  #rangesOf({ peer: { ranges }, former }: ClaimingPeer): readonly Cidr[] {
    if (former.length === 0) return ranges;
    const had = former.filter((one) => this.#claims.refusalOf(one) === undefined);
    return [...ranges, ...had.map(({ range }) => range)];
  }

  #formerOf({ formerRanges }: Peer): readonly Cidr[] {
    if (formerRanges.length === 0) return formerRanges;
    const { podRanges = [] } = this.#settings;
    return formerRanges.filter((range) => isPodRange(range, podRanges));
  }

  #forgetFormer({ former }: ClaimingPeer): readonly Claimant[] {
    return former.length === 0 ? NOBODY : former.flatMap((one) => this.#claims.remove(one));
  }
}

/** What a Node says, and what it claims for it. */
class ClaimingPeer implements Claimant {
  readonly peer: Peer;
  readonly spans: readonly Span[];
  /** The claims for ranges that it had before. */
  readonly former: readonly FormerRange[];

  constructor(peer: Peer, tunnel: TunnelKind | undefined, formerRanges: readonly Cidr[]) {
    this.peer = peer;
    this.former =
      formerRanges.length === 0 ? NO_RANGES : formerRanges.map((range) => new FormerRange(peer.name, range));
    const address = addressSpan(peer.address, 'address', this);
    const first = spanOf(peer.ranges[0]!, 'pod CIDR', this);
    const identity = identitySpan(peer, tunnel, this);
    // A list that grows gets room for sixteen more.
    const spans = identity ? [address, first, identity] : [address, first];
    for (let at = 1; at < peer.ranges.length; at++) spans.push(spanOf(peer.ranges[at]!, 'pod CIDR', this));
    this.spans = spans;
  }

  get name(): string {
    return this.peer.name;
  }

  get node(): string {
    return this.peer.name;
  }

  get createdAt(): number {
    return this.peer.createdAt;
  }
}

/** By what the tunnel knows the node, if it does. */
function identitySpan(peer: Peer, tunnel: TunnelKind | undefined, owner: Claimant): Span | undefined {
  switch (tunnel) {
    case undefined:
      return undefined;
    case 'vxlan':
      return macSpan(peer.mac, 'MAC address', owner);
    case 'wireguard':
      return peer.wireguard && keySpan(peer.wireguard.publicKey, 'WireGuard key', owner);
  }
}

/** The claim for a range that a Node had before: behind every Node that has it by its Node object. */
class FormerRange implements Claimant {
  readonly node: string;
  readonly range: Cidr;
  readonly name: string;
  readonly createdAt = Number.POSITIVE_INFINITY;
  readonly spans: readonly Span[];

  constructor(node: string, range: Cidr) {
    this.node = node;
    this.range = range;
    // "~" comes after the name of every Node, and is in none.
    this.name = `~${node} ${formatCidr(range)}`;
    this.spans = [spanOf(range, 'former pod CIDR', this)];
  }
}

const NOTHING: readonly string[] = [];
const NOBODY: readonly Claimant[] = [];
const NO_RANGES: readonly FormerRange[] = [];

/** The Nodes that claimants stand for, each once. */
function nodesOf(claimants: readonly Claimant[]): readonly string[] {
  if (claimants.length === 1) return [claimants[0]!.node];
  return [...new Set(claimants.map(({ node }) => node))];
}

const NO_KEY = `it tells no WireGuard key of its own (annotation ${WIREGUARD_ANNOTATIONS.publicKey}): look into the log of its agent, which has to run with the same --routes`;
