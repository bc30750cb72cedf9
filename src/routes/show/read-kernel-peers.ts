import {
  type Cidr,
  compareText,
  formatCidr,
  formatIp,
  type IpAddress,
  type IpFamily,
  isUnsupported,
} from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { listNexthops, listRoutes, type Nexthop, type Route } from '../../netlink/route/index.ts';
import { RT_TABLE_MAIN, RTN_UNICAST } from '../../netlink/uapi/index.ts';
import { formatKey, type WireguardPeer } from '../../netlink/wireguard/index.ts';
import { RTPROT_NODEPLANE } from '../kernel/route-object.ts';
import { KernelFacts } from './kernel-facts.ts';
import type { KernelPeer, KernelPeers, Reach } from './kernel-peer.ts';
import { pathOf, wireguardPath } from './paths.ts';
import { takenRanges } from './taken-ranges.ts';

/** Routes with the same next hop lead to the same node. */
interface Group {
  readonly outInterface: number;
  /** Undefined: our WireGuard device needs none. */
  readonly gateway: IpAddress | undefined;
  /** To whom that device sends. */
  readonly wireguard?: WireguardPeer | undefined;
  readonly podCidrs: Cidr[];
  mtu: number;
}

/**
 * Reads how the pods of other nodes are reached, from the kernel alone: our routes are known by their protocol.
 *
 * @throws KernelError
 */
export function readKernelPeers(netlink: Netlink, family: IpFamily): KernelPeers {
  const facts = new KernelFacts(netlink, family);
  const groups = groupByHop(listOurRoutes(netlink, family), listOurNexthops(netlink, family), facts);
  const ranges = [...groups.values()].flatMap(({ podCidrs }) => podCidrs);
  const taken = takenRanges(netlink, family, ranges);
  const peers = [...groups.values()].map(({ outInterface, gateway, wireguard, podCidrs, mtu }): KernelPeer => {
    const link = facts.link(outInterface);
    const { mode, address, reach } = gateway ? pathOf(link, gateway, facts) : wireguardPath(link!, wireguard, family);
    return {
      family,
      mode,
      device: link?.name ?? `link ${outInterface}`,
      gateway,
      address,
      podCidrs,
      mtu: Math.min(mtu, link?.mtu ?? mtu),
      reach: podCidrs.length > 0 ? (takenReach(podCidrs, taken) ?? reach) : { verdict: 'no', because: 'no route' },
    };
  });
  return { peers, leftovers: facts.unused() };
}

function takenReach(podCidrs: readonly Cidr[], taken: ReadonlyMap<string, Cidr>): Reach | undefined {
  const [other] = podCidrs.flatMap((range) => taken.get(formatCidr(range)) ?? []);
  if (!other) return undefined;
  const text = formatCidr(other);
  const look = `ip ${other.address.family === 'IPv6' ? '-6 ' : ''}route show ${text}`;
  return { verdict: 'no', because: `${text} goes the way of somebody else’s route: ${look}` };
}

function groupByHop(
  routes: readonly Route[],
  nexthops: readonly Nexthop[],
  facts: KernelFacts,
): ReadonlyMap<string, Group> {
  const groups = new Map<string, Group>();
  const groupOf = (key: string, hop: Pick<Group, 'outInterface' | 'gateway' | 'wireguard'>): Group => {
    const known = groups.get(key);
    if (known) return known;
    const group = { ...hop, podCidrs: [], mtu: Number.POSITIVE_INFINITY };
    groups.set(key, group);
    return group;
  };
  const through = (outInterface: number, gateway: IpAddress) =>
    groupOf(`${outInterface} ${formatIp(gateway)}`, { outInterface, gateway });
  const byWireguard = (outInterface: number, destination: Cidr) => {
    const wireguard = facts.peerOf(destination);
    const key = `wireguard ${wireguard ? formatKey(wireguard.publicKey) : 'nobody'}`;
    return groupOf(key, { outInterface, gateway: undefined, wireguard });
  };
  const byId = new Map<number, Group>();
  for (const { id, outInterface, gateway } of nexthops) if (gateway) byId.set(id, through(outInterface, gateway));
  for (const { nexthopId, outInterface, gateway, destination, mtu } of routes) {
    const hop = byId.get(nexthopId) ?? (gateway && through(outInterface, gateway));
    const group = hop ?? (facts.isWireguard(outInterface) ? byWireguard(outInterface, destination) : undefined);
    if (!group) continue;
    group.podCidrs.push(destination);
    group.mtu = Math.min(group.mtu, mtu ?? group.mtu);
  }
  for (const { podCidrs } of groups.values()) podCidrs.sort((a, b) => compareText(formatCidr(a), formatCidr(b)));
  return groups;
}

function listOurRoutes(netlink: Netlink, family: IpFamily): Route[] {
  const routes = listRoutes(netlink, { family, table: RT_TABLE_MAIN, protocol: RTPROT_NODEPLANE });
  return routes.filter(({ type }) => type === RTN_UNICAST);
}

function listOurNexthops(netlink: Netlink, family: IpFamily): Nexthop[] {
  try {
    return listNexthops(netlink, { family }).filter(({ protocol }) => protocol === RTPROT_NODEPLANE);
  } catch (error) {
    if (isUnsupported(error)) return [];
    throw error;
  }
}
