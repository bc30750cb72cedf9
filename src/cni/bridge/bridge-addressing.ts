import { type Cidr, type IpAddress, networkOf } from '../../core/index.ts';
import type { NetworkConfig } from '../config/network-config.ts';
import { type Addressing, type AssignedAddresses, commonAddressing } from '../link/addressing.ts';
import type { ModeAddressing } from '../link/pod-network.ts';

/** Pods have addresses of a subnet that they share, and their gateways are addresses of the bridge. */
export const bridgeAddressing: ModeAddressing = {
  derive(config: NetworkConfig, assigned: AssignedAddresses): Addressing {
    const { isGateway } = config;
    const ips = assigned.ips.map(({ address, gateway }) => ({
      address,
      gateway: gateway ?? (isGateway ? firstOf(address) : undefined),
    }));
    const bridgeAddresses = ips.flatMap(({ address, gateway }) =>
      gateway ? [{ address: gateway, prefixLength: address.prefixLength }] : [],
    );
    return {
      ...commonAddressing(config, assigned, ips, ({ gateway }, ofFamily) => gateway ?? ofFamily),
      bridgeAddresses: isGateway ? bridgeAddresses : [],
      peerGateways: [],
    };
  },

  withSubnets: (_, ips) => ips.map(({ address }) => ({ address })),
};

/** The gateways of all ranges of the network, as addresses of the bridge; empty if it is no gateway. */
export function configuredGateways({ isGateway, ipam }: NetworkConfig): Cidr[] {
  if (!isGateway || ipam.kind !== 'native') return [];
  return ipam.config.rangeSets
    .flat()
    .map(({ gateway, subnet }) => ({ address: gateway, prefixLength: subnet.prefixLength }));
}

/** The address after the network's, as the reference plugin chooses a gateway when nobody names one. */
function firstOf({ address, prefixLength }: Cidr): IpAddress {
  const first = networkOf(address, prefixLength);
  first.bytes[first.bytes.length - 1]! |= 1;
  return first;
}
