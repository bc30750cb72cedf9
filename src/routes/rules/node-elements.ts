import { addressBits, type Cidr, IP_FAMILIES, type IpAddress, type IpFamily, specialRange } from '../../core/index.ts';
import { type Node, nodeIpsOf, podRangesOf } from '../../kube/index.ts';
import { readFlannelVtep } from '../flannel/annotations.ts';
import { LIMITS } from '../plan/limits.ts';
import { addressElement, blockElement, type Element } from './elements.ts';
import type { RuleSettings } from './settings.ts';
import type { BlockSetKind } from './table.ts';

/** A node has one or two addresses of a family; who writes its Node object could name all there are. */
const MOST_ADDRESSES = 8;
/** A shorter prefix is no range of one node's pods, and would let packets to half the Internet leave as they are. */
const SHORTEST_PREFIX: Readonly<Record<IpFamily, number>> = { IPv4: 8, IPv6: 16 };

/** What another Node adds to the sets: its addresses, by whichever of them its packets come, and the ranges of its pods. */
export function peerElements(node: Node, { masquerade, wireguard }: RuleSettings): Element[] {
  const addresses = IP_FAMILIES.flatMap((family) => nodeAddresses(node, family));
  const kinds: BlockSetKind[] = [
    ...(masquerade ? (['kept'] as const) : []),
    ...(wireguard ? (['encrypted'] as const) : []),
  ];
  const ranges = kinds.length > 0 ? IP_FAMILIES.flatMap((family) => podRangesOf(node, family)) : [];
  return [
    ...addresses.map((address) => addressElement('peers', address)),
    ...ranges
      .slice(0, LIMITS.rangesOfPeer)
      .filter(({ address, prefixLength }) => prefixLength >= SHORTEST_PREFIX[address.family])
      .flatMap((range) => kinds.map((kind) => blockElement(kind, range))),
  ];
}

/**
 * What this node's own pod ranges add to the sets. Before they are known, packets to pods are not held back for where the cluster
 * has its pods: they could be for pods of this node.
 */
export function ownElements(ranges: readonly Cidr[], { masquerade, wireguard }: RuleSettings): Element[] {
  const isMasqueraded = ({ address }: Cidr) => masquerade?.ownPods.includes(address.family);
  const encrypted = ranges.length > 0 ? (wireguard?.podRanges ?? []) : [];
  return [
    ...ranges.flatMap((range) => [
      ...(masquerade ? [blockElement('kept', range)] : []),
      ...(isMasqueraded(range) ? [blockElement('masqueraded', range)] : []),
      ...(wireguard ? [blockElement('own', range)] : []),
    ]),
    ...encrypted.map((range) => blockElement('encrypted', range)),
  ];
}

/**
 * Blocks that contain addresses of this node are not of pods alone, whoever says so: to hold back what goes there could cut the
 * node off.
 */
export function unenforceable(ownAddresses: readonly IpAddress[]): ReadonlySet<Element> {
  return new Set(
    ownAddresses.flatMap((address) =>
      Array.from({ length: addressBits(address.family) + 1 }, (_, prefixLength) =>
        blockElement('encrypted', { address, prefixLength }),
      ),
    ),
  );
}

/** By which of its addresses a node's tunnel packets are let in: InternalIPs, ExternalIPs, and where flannel says it is. */
export function nodeAddresses(node: Node, family: IpFamily): IpAddress[] {
  const flannel = readFlannelVtep(node.metadata.annotations ?? {}, family);
  const addresses = [...(flannel && 'publicIp' in flannel ? [flannel.publicIp] : []), ...nodeIpsOf(node)];
  return addresses
    .filter((address) => address.family === family && specialRange(address) === undefined)
    .slice(0, MOST_ADDRESSES);
}
