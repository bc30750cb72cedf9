import { type Cidr, type IpAddress, type IpFamily, trimmed, tryParseCidr, tryParseIp } from '../../core/index.ts';
import type { Node } from './types.ts';

// What several parts read of a Node. What cannot be read is left out.

/** The ranges of the node's pods, as they are written; a Node may have the older field alone. */
export function podCidrTexts({ spec }: Node): readonly string[] {
  return spec?.podCIDRs ?? (spec?.podCIDR ? [spec.podCIDR] : []);
}

/** The ranges of the node's pods in one family. */
export function podRangesOf(node: Node, family: IpFamily): Cidr[] {
  const ranges: Cidr[] = [];
  for (const text of podCidrTexts(node)) {
    const range = mayBeOf(text, family) ? tryParseCidr(text) : undefined;
    if (range?.address.family === family) ranges.push(range);
  }
  return trimmed(ranges);
}

/** The first InternalIP of a family. */
export function internalIpOf(node: Node | undefined, family: IpFamily): IpAddress | undefined {
  for (const { type, address } of node?.status?.addresses ?? []) {
    const ip = type === 'InternalIP' && mayBeOf(address, family) ? tryParseIp(address) : undefined;
    if (ip?.family === family) return ip;
  }
  return undefined;
}

/** All InternalIPs, in their order. */
export function internalIpsOf(node: Node | undefined): IpAddress[] {
  return ipsOf(node, 'InternalIP');
}

/** All InternalIPs, then all ExternalIPs. */
export function nodeIpsOf(node: Node | undefined): IpAddress[] {
  return [...ipsOf(node, 'InternalIP'), ...ipsOf(node, 'ExternalIP')];
}

function ipsOf(node: Node | undefined, wanted: 'InternalIP' | 'ExternalIP'): IpAddress[] {
  const addresses = node?.status?.addresses ?? [];
  return addresses.flatMap(({ type, address }) => (type === wanted ? (tryParseIp(address) ?? []) : []));
}

/**
 * When an object was created, by its metadata.
 *
 * @returns milliseconds since the epoch; infinity while it is not known: whoever came first goes before it
 */
export function createdAtOf(creationTimestamp: string | undefined): number {
  const time = creationTimestamp === undefined ? Number.NaN : Date.parse(creationTimestamp);
  return Number.isNaN(time) ? Number.POSITIVE_INFINITY : time;
}

/** Saves reading the other family's addresses of thousands of nodes. IPv4 can be written as IPv6 (::ffff:10.0.0.1, 0:0:...). */
function mayBeOf(text: string, family: IpFamily): boolean {
  return text.includes(':') ? family === 'IPv6' || text.startsWith(':') || text.startsWith('0') : family === 'IPv4';
}
