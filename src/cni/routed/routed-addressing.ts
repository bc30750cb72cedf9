import { addressBits, type Cidr, cidrContains, type IpAddress, type IpFamily, parseIp } from '../../core/index.ts';
import { RT_SCOPE_LINK } from '../../netlink/uapi/index.ts';
import { commonAddressing, type PodIp } from '../link/addressing.ts';
import type { ModeAddressing } from '../link/pod-network.ts';
import type { ResultRoute } from '../protocol/result.ts';

/** The gateway of every routed pod: the host's end of its own link, and nobody else's. */
const ROUTED_GATEWAY: Record<IpFamily, IpAddress> = { IPv4: parseIp('169.254.1.1'), IPv6: parseIp('fe80::1') };
/** That of IPv6 the host's end carries as its address. */
export const HOST_GATEWAY: Cidr = { address: ROUTED_GATEWAY.IPv6, prefixLength: 64 };

/** Pods have addresses without subnet, and reach nobody but their gateway directly. */
export const routedAddressing: ModeAddressing = {
  derive(config, assigned) {
    const common = commonAddressing(config, assigned, assigned.ips.map(routedIp), (_, ofFamily) => ofFamily);
    const { families, routes } = common;
    const toGateway: ResultRoute[] = families.has('IPv4')
      ? [{ destination: { address: ROUTED_GATEWAY.IPv4, prefixLength: 32 }, scope: RT_SCOPE_LINK }]
      : [];
    return {
      ...common,
      routes: [...toGateway, ...routes],
      bridgeAddresses: [],
      peerGateways: [...families].map((family) => ROUTED_GATEWAY[family]),
    };
  },

  // The full length is all that is known of addresses that another plugin manages.
  withSubnets({ ipam }, ips) {
    const subnets = ipam.kind === 'native' ? ipam.config.rangeSets.flat().map(({ subnet }) => subnet) : [];
    return ips.map(({ address: { address, prefixLength } }) => {
      const subnet = subnets.find((cidr) => cidrContains(cidr, address));
      return { address: { address, prefixLength: subnet?.prefixLength ?? prefixLength } };
    });
  },
};

function routedIp({ address: { address } }: PodIp): PodIp {
  const { family } = address;
  return { address: { address, prefixLength: addressBits(family) }, gateway: ROUTED_GATEWAY[family] };
}
