import {
  addressBits,
  type Cidr,
  cidrContains,
  formatCidr,
  formatIp,
  type IpAddress,
  networkOf,
  sameBytes,
} from '../../core/index.ts';
import { type Link, lookUpRoute, newOwnBridgeVlan, newRoute, setBridge, setLink } from '../../netlink/route/index.ts';
import { IFF_PROMISC, RT_SCOPE_LINK, RTPROT_KERNEL } from '../../netlink/uapi/index.ts';
import { addressRequests, createBridge } from '../bridge/bridge.ts';
import { bridgeMac } from '../bridge/connect-bridge.ts';
import { ensureVlanGateway } from '../bridge/vlan-gateway.ts';
import { filtersVlans, gatewayLinkName } from '../config/bridge-config.ts';
import { withNodeLock } from '../link/node-lock.ts';
import { UndoStack } from '../link/undo.ts';
import { type Difference, type Finding, findingsOf, type Mend } from './finding.ts';
import type { KernelLinks } from './kernel-links.ts';
import { forwardedFamilies, linkForwarding, settingDifferences } from './settings.ts';
import type { WantedLink } from './wanted-link.ts';

/** The kernel gives the route to a link's own IPv6 prefix this metric (IP6_RT_PRIO_ADDRCONF). */
const IPV6_PREFIX_METRIC = 256;

/** In what the bridges of pods, and the links with the gateways of their VLANs, differ from what the pods' ADDs made of them. */
export function bridgeFindings(kernel: KernelLinks, pods: readonly WantedLink[]): Finding[] {
  const bridged = pods.filter(({ mode }) => mode === 'bridge');
  const names = new Set(bridged.map(({ bridge }) => bridge.name));
  return [...names].flatMap((name) =>
    findingsOfBridge(
      kernel,
      name,
      bridged.filter(({ bridge }) => bridge.name === name),
    ),
  );
}

function findingsOfBridge(kernel: KernelLinks, name: string, pods: readonly WantedLink[]): Finding[] {
  const link = kernel.named(name);
  const object = `bridge "${name}"`;
  if (!link) {
    // Without its addresses a bridge is of no use, and earlier versions did not note them.
    const mends = pods.some(({ made }) => made) ? [remake(name, pods)] : [];
    return [{ drift: { object, difference: 'missing' }, mends }];
  }
  if (link.kind !== 'bridge') {
    const theirs = `is no bridge but ${link.kind ? `of kind "${link.kind}"` : 'a network device'}: no repair changes that`;
    return findingsOf(object, [{ theirs }]);
  }
  const wantsVlans = pods.some(({ bridge }) => filtersVlans(bridge));
  const wantsAll = pods.some(({ bridge }) => bridge.promiscMode);
  const own: Difference[] = [
    ...upDifferences(link),
    ...(wantsAll && (link.flags & IFF_PROMISC) === 0
      ? [{ theirs: 'promisc off', ours: 'promisc on', mend: locked(setLink(link.index, { promiscuous: true })) }]
      : []),
    ...(wantsVlans && !link.vlanFiltering
      ? [
          {
            theirs: 'vlan_filtering 0',
            ours: 'vlan_filtering 1',
            mend: locked(setBridge(link.index, { vlanFiltering: true })),
          },
        ]
      : []),
    ...mtuDifferences(kernel, link, pods),
  ];
  const vlans = new Set(pods.map(({ bridge }) => bridge.vlan));
  return [...vlans].flatMap((vlan) => {
    const members = pods.filter(({ bridge }) => bridge.vlan === vlan);
    if (vlan > 0) return [...findingsOf(object, own.splice(0)), ...vlanGatewayFindings(kernel, link, members)];
    return findingsOf(object, [...own.splice(0), ...gatewayDifferences(kernel, link, members)]);
  });
}

function vlanGatewayFindings(kernel: KernelLinks, bridge: Link, pods: readonly WantedLink[]): Finding[] {
  const gateways = gatewaysOf(pods);
  const [pod] = pods;
  if (gateways.length === 0 || !pod) return [];
  const { vlan } = pod.bridge;
  const name = gatewayLinkName(pod.bridge);
  const link = kernel.named(name);
  const object = `gateway "${name}"`;
  const remakeGateway: Mend = (host) => {
    const desired = { ...pod.bridge, gateways, configured: gateways, forceAddress: false };
    withNodeLock(() => ensureVlanGateway(host, bridge, desired, new UndoStack()));
  };
  if (!link) return [{ drift: { object, difference: 'missing' }, mends: [remakeGateway] }];
  const isMember = kernel.vlansOf(bridge.index).some(({ first, last }) => first <= vlan && vlan <= last);
  return findingsOf(object, [
    ...upDifferences(link),
    ...(link.kind === 'vlan' && !isMember
      ? [{ ours: `bridge "${bridge.name}" itself in vlan ${vlan}`, mend: locked(newOwnBridgeVlan(bridge.index, vlan)) }]
      : []),
    ...gatewayDifferences(kernel, link, pods),
  ]);
}

/** Of the link that carries the gateways of pods. */
function gatewayDifferences(kernel: KernelLinks, link: Link, pods: readonly WantedLink[]): Difference[] {
  const gateways = gatewaysOf(pods);
  const families = [...new Set(pods.flatMap(forwardedFamilies))];
  const { name, index } = link;
  return [
    ...gateways.flatMap((gateway): Difference[] => {
      if (!kernel.hasAddress(index, gateway)) {
        const mend: Mend = (host) =>
          withNodeLock(() => host.execute(...addressRequests(link, { remove: [], add: [gateway] })));
        return [{ ours: `address ${formatCidr(gateway)}`, mend }];
      }
      const network = { ...gateway, address: networkOf(gateway.address, gateway.prefixLength) };
      if (gateway.prefixLength === addressBits(gateway.address.family)) return [];
      if (kernel.hasRoute(network, index)) return strayingWays(kernel, link, addressesWithin(network, pods));
      return [
        {
          ours: `route ${formatCidr(network)} dev ${name} proto kernel src ${formatIp(gateway.address)}`,
          mend: locked(prefixRoute(index, network, gateway)),
        },
      ];
    }),
    ...settingDifferences({
      ...linkForwarding(name, families),
      ...(families.includes('IPv6') && { [`net/ipv6/conf/${name}/accept_ra`]: 0 }),
      ...(pods.some(leadsFromLoopback) && { [`net/ipv4/conf/${name}/route_localnet`]: 1 }),
    }),
  ];
}

/** Of the first of these addresses that the node does not reach by the link: that of all others may be the same. */
function strayingWays(
  kernel: KernelLinks,
  { index, name, master }: Link,
  addresses: readonly IpAddress[],
): Difference[] {
  // The routes of a VRF are elsewhere.
  if (master !== 0) return [];
  for (const destination of addresses) {
    const answer = lookUpRoute(kernel.host, { destination });
    if (answer.kind === 'route' && answer.route.outInterface === index) continue;
    const text = formatIp(destination);
    const where =
      answer.kind === 'route' ? `by ${kernel.nameOf(answer.route.outInterface)}` : `nowhere (${answer.errno})`;
    const look = `ip${destination.family === 'IPv6' ? ' -6' : ''} route show match ${text}`;
    return [
      {
        theirs: `what the node sends to ${text} goes ${where}, by a route of somebody else that no repair removes (${look})`,
        ours: `what the node sends to ${text} goes by ${name}`,
      },
    ];
  }
  return [];
}

function addressesWithin(network: Cidr, pods: readonly WantedLink[]): IpAddress[] {
  const addresses = pods.flatMap(({ ips }) => ips.map(({ address }) => address.address));
  return addresses.filter((address) => cidrContains(network, address));
}

/** The route that comes with an address. */
function prefixRoute(index: number, destination: Cidr, { address }: Cidr) {
  const isIpv4 = address.family === 'IPv4';
  return newRoute({
    destination,
    outInterface: index,
    protocol: RTPROT_KERNEL,
    ...(isIpv4 ? { scope: RT_SCOPE_LINK, source: address } : { priority: IPV6_PREFIX_METRIC }),
  });
}

/** A bridge drops in silence what is too large for a port, and sends back to the sender what is too large for itself. */
function mtuDifferences(kernel: KernelLinks, link: Link, pods: readonly WantedLink[]): Difference[] {
  const made = pods.flatMap((pod) => pod.made ?? []);
  // One that somebody else made may lead elsewhere.
  const isOurs = made.some(({ gateways }) => sameBytes(link.address, bridgeMac(link.name, gateways)));
  const least = kernel.leastMtuOfPorts(link.index);
  if (!isOurs || least === undefined || least === link.mtu) return [];
  return [{ theirs: `mtu ${link.mtu}`, ours: `mtu ${least}`, mend: locked(setLink(link.index, { mtu: least })) }];
}

/** A new bridge in the place of one that is gone; its ports and addresses are differences then. */
function remake(name: string, pods: readonly WantedLink[]): Mend {
  const [first] = pods;
  const vlanFiltering = pods.some(({ bridge }) => filtersVlans(bridge));
  const gateways = first?.bridge.vlan === 0 ? gatewaysOf(pods) : [];
  return (host) =>
    withNodeLock(() => {
      createBridge(host, { name: first!.bridge.name, mac: bridgeMac(name, gateways), vlanFiltering }, new UndoStack());
    });
}

function upDifferences({ up, index }: Link): Difference[] {
  return up ? [] : [{ theirs: 'down', ours: 'up', mend: locked(setLink(index, { up: true })) }];
}

function gatewaysOf(pods: readonly WantedLink[]): Cidr[] {
  const gateways = pods.flatMap(({ made }) => made?.gateways ?? []);
  return [...new Map(gateways.map((gateway) => [formatCidr(gateway), gateway])).values()];
}

/** Whether packets from 127.0.0.1 are led to the pod's mapped ports. */
export function leadsFromLoopback({ features, ips }: WantedLink): boolean {
  const { snat, mappings } = features.portMappings ?? { snat: false, mappings: [] };
  const isIpv4 = ips.some(({ address }) => address.address.family === 'IPv4');
  return snat && isIpv4 && mappings.some(({ hostIp }) => (hostIp?.family ?? 'IPv4') === 'IPv4');
}

/** A change of what pods share. */
function locked(request: ReturnType<typeof setLink>): Mend {
  return (host) => withNodeLock(() => host.execute(request));
}
