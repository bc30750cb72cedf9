import { addressBits } from '../../core/index.ts';
import { newAddress, newNeighbour, newRoute } from '../../netlink/route/index.ts';
import { failpoint } from '../../sys/index.ts';
import type { Addressing } from '../link/addressing.ts';
import type { Attaching, Connection } from '../link/attaching.ts';
import { createVeth } from '../link/host-link.ts';
import { writeSysctlIfPresent } from '../link/sysctls.ts';
import { HOST_GATEWAY } from './routed-addressing.ts';

/**
 * Makes the veth pair and the node's routes to the pod; the pod's end is left down.
 *
 * The pod sends everything to 169.254.1.1 and fe80::1, which are the host's end of its own link: the IPv4 one is answered
 * for by proxy ARP, the IPv6 one is an address of the link. Neither side has to ask for the other's MAC, because both are
 * entered for good; whoever asks all the same gets an answer.
 */
export function connectRouted(attaching: Attaching, { ips, families }: Addressing, podMac: Uint8Array): Connection {
  const { config, host } = attaching;
  const hostLink = createVeth(host, attaching, { mtu: config.mtu, podMac });
  failpoint('veth');
  const { index, name } = hostLink;
  if (families.has('IPv4')) {
    writeSysctlIfPresent(`net/ipv4/conf/${name}/proxy_arp`, 1);
    // Else the answer is held back for up to 0.8 seconds.
    writeSysctlIfPresent(`net/ipv4/neigh/${name}/proxy_delay`, 0);
    writeSysctlIfPresent(`net/ipv4/conf/${name}/forwarding`, 1);
  }
  if (families.has('IPv6')) {
    // It is off on new links where it was switched off on `all` or `default`.
    writeSysctlIfPresent(`net/ipv6/conf/${name}/disable_ipv6`, 0);
    writeSysctlIfPresent(`net/ipv6/conf/${name}/proxy_ndp`, 1);
    writeSysctlIfPresent(`net/ipv6/conf/${name}/forwarding`, 1);
    host.execute(newAddress({ index, ...HOST_GATEWAY, replace: true }));
  }
  host.execute(
    ...ips.flatMap(({ address: { address } }) => [
      // A route that is there already leads to a pod that is gone, or the address would not have been free.
      newRoute({
        destination: { address, prefixLength: addressBits(address.family) },
        outInterface: index,
        replace: true,
      }),
      newNeighbour({ index, ip: address, lladdr: podMac, replace: true }),
    ]),
  );
  failpoint('host-link');
  return { hostLink, bridge: undefined, gateway: undefined };
}
