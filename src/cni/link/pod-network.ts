import type { IpAddress } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import type { Link } from '../../netlink/route/index.ts';
import type { BridgeConfig } from '../config/bridge-config.ts';
import type { FeatureConfig } from '../config/feature-config.ts';
import type { AddressManagement, NetworkConfig } from '../config/network-config.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';
import type { ResultIp } from '../protocol/result.ts';
import type { Addressing, AssignedAddresses } from './addressing.ts';
import type { Attaching, Connection } from './attaching.ts';
import type { Checking } from './checking.ts';

/**
 * One kind of network, named by key `mode` of its configuration (pod-networks.ts): how pods get on it, and how that is
 * checked. What pods are given beyond that, by whatever network, are features.
 */
export interface PodNetwork {
  readonly addressing: ModeAddressing;

  /**
   * Looks whether pods can be connected. Called before an ADD changes anything, and by STATUS.
   *
   * @returns the node's own addresses on the network, none of which may be handed out
   * @throws CniError 106 when something of the node is in the way
   */
  checkNode(host: Netlink, config: NetworkConfig): IpAddress[];

  /**
   * Makes the veth pair and whatever the node needs to reach the pod by it; the pod's end is left down. Puts the way back of
   * each step on `undo` before it takes the step.
   *
   * @param podMac 6 bytes
   * @throws CniError 104, 105, 106; errors of the layers below
   */
  connect(attaching: Attaching, addressing: Addressing, podMac: Uint8Array): Connection;

  /**
   * Called by CHECK: compares what `connect` made on the node with the result of the ADD. Changes nothing.
   *
   * @returns the link with the gateways' addresses, if there is one
   */
  check(checking: Checking, hostLink: Link): Promise<Link | undefined>;

  /**
   * Called by STATUS: looks whether the pods that are there are connected still.
   *
   * @throws CniError 51
   */
  checkPods(host: Netlink, config: NetworkConfig): void;
}

/** What a mode makes of the configuration of its networks. Pure. */
export interface ModeRules {
  /** The node is the pods' gateway whatever the configuration says. */
  readonly isAlwaysGateway: boolean;
  /** Keys that are known and have no effect in this mode. */
  readonly unusedKeys: readonly string[];
  /** Why they have none: the end of a sentence. */
  readonly whyUnused: string;
  /** @throws CniError 7 for a bridge that cannot be made */
  checkBridge(bridge: BridgeConfig, isGateway: boolean): void;
  /** @throws CniError 2 for features that this mode does not have */
  checkFeatures(features: FeatureConfig, ipam: AddressManagement): void;
  /** What rules about a pod depend on. */
  reach(bridge: ReachSettings, key: AttachmentKey): PodReach;
}

/** How pods of a mode are addressed. */
export interface ModeAddressing {
  /** Derives addresses, routes and gateways of a pod from what it was given, in the order given. */
  derive(config: NetworkConfig, assigned: AssignedAddresses): Addressing;
  /**
   * A pod's addresses with the prefix of the subnet they were taken from, whatever prefix its interface has them with.
   *
   * @param ips as `derive` or the result of the ADD has them
   */
  withSubnets(config: Pick<NetworkConfig, 'ipam'>, ips: readonly Pick<ResultIp, 'address'>[]): SubnetAddress[];
}

/** An address of a pod with the prefix of its subnet. */
export type SubnetAddress = Pick<ResultIp, 'address'>;

/** The keys on which the reach of pods depends. */
export type ReachSettings = Pick<BridgeConfig, 'name' | 'vlan' | 'macspoofchk'>;

/** How the node and its other pods reach a pod. */
export interface PodReach {
  /** The link by which packets of the node leave for the pod. */
  readonly link: string;
  /** Pods of its subnet are on that link, too: what they send each other does not pass through the node's stack. */
  readonly isShared: boolean;
  /** The pod's frames pass a bridge that is asked to check their source MAC. */
  readonly checksMac: boolean;
}
