import { type Cidr, cidrContains } from '../../core/index.ts';
import type { BridgeConfig } from '../config/bridge-config.ts';
import type { NetworkConfig } from '../config/config.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';
import type { ResultIp } from '../protocol/result.ts';

/** An attachment as far as what concerns its addresses in nftables depends on it. */
export interface AddressedAttachment {
  readonly key: AttachmentKey;
  readonly config: Pick<NetworkConfig, 'mode' | 'features'>;
  /** The pod's addresses with the prefix of their subnet, also in mode `routed` (`withSubnets`). */
  readonly ips: readonly { readonly address: Cidr }[];
}

/** An attachment as far as its elements and rules in nftables depend on it. */
export interface WantedAttachment extends AddressedAttachment {
  readonly config: AddressedAttachment['config'] & {
    readonly bridge: Pick<BridgeConfig, 'name' | 'vlan' | 'macspoofchk'>;
  };
  /** As in `FeatureContext`. */
  readonly mac: Uint8Array;
}

/**
 * The addresses of a pod with the prefix of the subnet they were taken from. A routed pod's own have full length, which is
 * all that is known of them when another plugin manages the addresses.
 */
export function withSubnets(
  { mode, ipam }: Pick<NetworkConfig, 'mode' | 'ipam'>,
  ips: readonly Pick<ResultIp, 'address'>[],
): { readonly address: Cidr }[] {
  if (mode === 'bridge' || ipam.kind !== 'native') return ips.map(({ address }) => ({ address }));
  const subnets = ipam.config.rangeSets.flat().map(({ subnet }) => subnet);
  return ips.map(({ address: { address, prefixLength } }) => {
    const subnet = subnets.find((cidr) => cidrContains(cidr, address));
    return { address: { address, prefixLength: subnet?.prefixLength ?? prefixLength } };
  });
}
