import { type IpAddress, ipEquals } from '../../core/index.ts';
import type { Link } from '../../netlink/route/index.ts';
import type { OtherNamespace } from './namespaces.ts';

/** A pod as this node sees it. */
export interface LocalPod {
  readonly ip: string;
  readonly address: IpAddress;
  readonly prefixLength: number;
  readonly netns: string;
  /** The MAC addresses of all its links: with two on one bridge either may be found for its address (arp_ignore, arp_filter). */
  readonly macs: readonly Uint8Array[];
  /** Its end of the pair. */
  readonly inside: Link;
  /** The node's end; undefined: it has none here (macvlan, or the pair is gone). */
  readonly outside: Link | undefined;
  /** What rules see its packets come in by: the bridge it is plugged into, or its own link. */
  readonly seenAs: Link | undefined;
}

/** A pod for each address in namespaces that links of this node lead to. @param links those of this node */
export function localPodsIn(namespaces: readonly OtherNamespace[], links: readonly Link[]): readonly LocalPod[] {
  return namespaces.flatMap(({ id, path, macs, addresses }) =>
    onceEach(addresses).map(({ ip, address, prefixLength, link: inside }) => {
      const outside = links.find(
        ({ index, kind, peerNetnsId }) =>
          kind === 'veth' && index === inside.peerIndex && peerNetnsId !== undefined && peerNetnsId === id,
      );
      const seenAs = outside && (outside.master === 0 ? outside : links.find(({ index }) => index === outside.master));
      return { ip, address, prefixLength, netns: path, macs, inside, outside, seenAs };
    }),
  );
}

/**
 * An address that a link has in several subnets (IPv4 tells such apart by their masks) is one, of the widest: it
 * answers who is in any of them.
 */
function onceEach(addresses: OtherNamespace['addresses']): OtherNamespace['addresses'] {
  const widest = [...addresses].sort((a, b) => a.prefixLength - b.prefixLength);
  const first = new Map(widest.toReversed().map((one) => [`${one.link.index} ${one.ip}`, one]));
  return addresses.filter((one) => first.get(`${one.link.index} ${one.ip}`) === one);
}

/**
 * In which other pod of the same link there is an address as well, on whichever of its links: it answers ARP for that
 * too. Undefined: in none, or of IPv6, which asks for addresses of the link alone.
 */
export function rivalOf(address: IpAddress, { netns, seenAs }: LocalPod, all: readonly LocalPod[]): string | undefined {
  if (address.family === 'IPv6' || !seenAs) return undefined;
  const here = new Set(all.filter((pod) => pod.seenAs?.index === seenAs.index).map((pod) => pod.netns));
  return all.find((pod) => ipEquals(pod.address, address) && pod.netns !== netns && here.has(pod.netns))?.netns;
}
