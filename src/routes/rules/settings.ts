import type { Cidr, IpFamily } from '../../core/index.ts';

/** What the operator decided that ends up in rules. */
export interface RuleSettings {
  /** UDP port of VXLAN; undefined: this node takes no packets by VXLAN. */
  readonly tunnelPort: number | undefined;
  /** @default this node has no WireGuard device */
  readonly wireguard?: WireguardRules | undefined;
  /** The bits of the mark by which the Services part, or a kube-proxy, asks for masquerading. */
  readonly masqueradeMark: number;
  /** Undefined: packets of pods leave as they are. */
  readonly masquerade: MasqueradeSettings | undefined;
}

/** What concerns WireGuard. */
export interface WireguardRules {
  /** UDP port of this node's device. */
  readonly port: number;
  /** Addresses of pods, wherever they are: besides the ranges that other Nodes name. */
  readonly podRanges: readonly Cidr[];
  /** Whether nodes on the same link get packets to their pods as they are. */
  readonly mayBeDirect: boolean;
}

/** Which packets carry the node's address when they leave the cluster. */
export interface MasqueradeSettings {
  /** The families in which those of this node's pods do. */
  readonly ownPods: readonly IpFamily[];
  /** Whose packets do besides. */
  readonly sources: readonly Cidr[];
  /** Destinations to which packets keep their source, besides the pods of all nodes. */
  readonly exempt: readonly Cidr[];
  /** Whether packets to other nodes' own addresses keep their source: where the answer comes back the same way. */
  readonly keepsSourceToNodes: boolean;
  /** Whether the new source ports are chosen at random. */
  readonly randomFully: boolean;
}
