import { type Cidr, type IpAddress, ipEquals, isExists } from '../core/index.ts';
import { deleteAddress, type Link, listAddresses, listLinks, newAddress, newRoute, setLink } from '../netlink/index.ts';
import type { InterfaceName } from './environment.ts';
import { CNI_ERROR, CniError } from './errors.ts';
import type { PodNamespace } from './pod-namespace.ts';
import { writeSysctlIfPresent } from './sysctls.ts';
import type { UndoStack } from './undo.ts';

/** How the pod's end is to be configured. */
export interface PodLinkSettings {
  readonly ifname: InterfaceName;
  readonly index: number;
  readonly addresses: readonly Cidr[];
  readonly routes: readonly { readonly destination: Cidr; readonly gateway: IpAddress }[];
}

/**
 * Checks that the interface's name is free in the pod.
 *
 * @returns the pod's loopback
 * @throws CniError 104
 */
export function checkInterfaceAbsent(pod: PodNamespace, ifname: InterfaceName): Link | undefined {
  const links = listLinks(pod.netlink);
  if (links.some(({ name }) => name === ifname)) {
    throw new CniError(
      CNI_ERROR.INTERFACE_EXISTS,
      `Interface "${ifname}" already exists in the network namespace "${pod.path}"; send DEL before another ADD`,
    );
  }
  return links.find(({ name }) => name === 'lo');
}

/**
 * Gives the pod's end its addresses and routes and switches it on, and the loopback with it.
 *
 * A route that is there already, such as the default route of an interface attached before, stays: the first one wins.
 */
export function configurePodLink(
  pod: PodNamespace,
  loopback: Link | undefined,
  { ifname, index, addresses, routes }: PodLinkSettings,
  undo: UndoStack,
): void {
  const hasIpv6 = addresses.some(({ address }) => address.family === 'IPv6');
  pod.run(() => {
    // Another pod on the bridge could otherwise announce itself as a router.
    writeSysctlIfPresent(`net/ipv6/conf/${ifname}/accept_ra`, 0);
    if (!hasIpv6) return;
    // A runtime may have started the pod with IPv6 switched off.
    writeSysctlIfPresent(`net/ipv6/conf/${ifname}/disable_ipv6`, 0);
    if (writeSysctlIfPresent('net/ipv6/conf/lo/disable_ipv6', 0)) {
      undo.add('enable IPv6 on lo', () => pod.run(() => void writeSysctlIfPresent('net/ipv6/conf/lo/disable_ipv6', 1)));
    }
  });
  const requests = addresses.map((cidr) => newAddress({ index, ...cidr }));
  if (loopback && !loopback.up) {
    requests.push(setLink(loopback.index, { up: true }));
    undo.add('set lo up', setDownAgain(pod, loopback.index));
  }
  pod.netlink.execute(...requests, setLink(index, { up: true }));
  for (const { destination, gateway } of routes) {
    try {
      pod.netlink.execute(newRoute({ destination, gateway, outInterface: index }));
    } catch (error) {
      if (!isExists(error)) throw error;
    }
  }
}

/** The kernel gives a loopback that comes up 127.0.0.1/8, and leaves it there when it goes down. */
function setDownAgain({ netlink }: PodNamespace, index: number): () => void {
  const addressesBefore = listAddresses(netlink, { index });
  return () => {
    const added = listAddresses(netlink, { index }).filter(
      ({ address }) => !addressesBefore.some((before) => ipEquals(before.address, address)),
    );
    netlink.execute(setLink(index, { up: false }));
    // The IPv6 one, ::1, went by itself.
    for (const { address, prefixLength } of added.filter(({ address }) => address.family === 'IPv4')) {
      netlink.execute(deleteAddress({ index, address, prefixLength }));
    }
  };
}
