import { type Cidr, type IpAddress, type IpFamily, specialRange, tryParseIp } from '../../core/index.ts';
import type { Node } from '../../kube/index.ts';
import { readFlannelVtep } from '../flannel/annotations.ts';
import { LIMITS } from '../plan/limits.ts';
import { podRangesOf } from '../plan/peer.ts';
import { addressElement, blockElement, type Element } from './elements.ts';
import type { RuleSettings } from './settings.ts';
import { IP_FAMILIES } from './table.ts';

/** A node has one or two addresses of a family; who writes its Node object could name all there are. */
const MOST_ADDRESSES = 8;
/** A shorter prefix is no range of one node's pods, and would let packets to half the Internet leave as they are. */
const SHORTEST_PREFIX: Readonly<Record<IpFamily, number>> = { IPv4: 8, IPv6: 16 };

/** What another Node adds to the sets: its addresses, by whichever of them its packets come, and the ranges of its pods. */
export function peerElements(node: Node, { masquerade }: RuleSettings): Element[] {
  const addresses = IP_FAMILIES.flatMap((family) => nodeAddresses(node, family));
  const ranges = masquerade ? IP_FAMILIES.flatMap((family) => podRangesOf(node, family)) : [];
  return [
    ...addresses.map((address) => addressElement('peers', address)),
    ...ranges
      .slice(0, LIMITS.rangesOfPeer)
      .filter(({ address, prefixLength }) => prefixLength >= SHORTEST_PREFIX[address.family])
      .map((range) => blockElement('kept', range)),
  ];
}

/** What this node's own pod ranges add to the sets. */
export function ownElements(ranges: readonly Cidr[], { masquerade }: RuleSettings): Element[] {
  if (!masquerade) return [];
  return ranges.flatMap((range) => [
    blockElement('kept', range),
    ...(masquerade.ownPods.includes(range.address.family) ? [blockElement('masqueraded', range)] : []),
  ]);
}

/** By which of its addresses a node's tunnel packets are let in: InternalIPs, ExternalIPs, and where flannel says it is. */
export function nodeAddresses({ status, metadata: { annotations = {} } }: Node, family: IpFamily): IpAddress[] {
  const named = (status?.addresses ?? []).filter(({ type }) => type === 'InternalIP' || type === 'ExternalIP');
  const flannel = readFlannelVtep(annotations, family);
  const addresses = [
    ...(flannel && 'publicIp' in flannel ? [flannel.publicIp] : []),
    ...named.flatMap(({ address }) => tryParseIp(address) ?? []),
  ];
  return addresses
    .filter((address) => address.family === family && specialRange(address) === undefined)
    .slice(0, MOST_ADDRESSES);
}
