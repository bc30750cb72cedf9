import type { DnsSettings, IpamConfig } from '../../ipam/index.ts';
import type { NetworkName } from '../protocol/environment.ts';
import type { BridgeConfig } from './bridge-config.ts';
import type { FeatureConfig } from './feature-config.ts';

/**
 * The kinds of networks, as key `mode` names them. `bridge`: pods are ports of one. `routed`: each has a route of its own on
 * the node, and shares no link with others.
 */
export const NETWORK_MODES = ['bridge', 'routed'] as const;
export type NetworkMode = (typeof NETWORK_MODES)[number];

/** Who manages the addresses of a network. */
export type AddressManagement =
  /** Pods get an interface without address. */
  | { readonly kind: 'none' }
  /** This plugin, with host-local's configuration and directory. */
  | { readonly kind: 'native'; readonly config: IpamConfig }
  /** Another plugin of CNI_PATH. */
  | { readonly kind: 'delegate'; readonly type: string };

/** A network configuration for ADD and CHECK. */
export interface NetworkConfig {
  readonly name: NetworkName;
  readonly mode: NetworkMode;
  /** Of no use in mode `routed`. */
  readonly bridge: BridgeConfig;
  /** Undefined: what the kernel gives (1500). */
  readonly mtu: number | undefined;
  /** The bridge carries the gateways' addresses and the node forwards. */
  readonly isGateway: boolean;
  readonly isDefaultGateway: boolean;
  /** IPv6 addresses are not used before it is certain that nobody else has them. */
  readonly enabledad: boolean;
  /** The pod's end stays down. */
  readonly disableContainerInterface: boolean;
  /** What the runtime asks the pod's interface to have; undefined for a MAC of our choice. */
  readonly mac: Uint8Array | undefined;
  readonly ipam: AddressManagement;
  /** Empty: what the address management says. */
  readonly dns: DnsSettings;
  readonly features: FeatureConfig;
}
