import { addressBits, type Cidr, cidrContains, compareIp, lastOf, networkOf } from '../../../core/index.ts';
import type { NodePlan, ServicePortPlan } from '../../index.ts';
import { sourceRangeKeys } from './keys.ts';

/**
 * The ranges whose members may use the load-balancer IPs, in ascending order, none within another: the kernel refuses
 * overlaps. A node that holds the IP as an address of its own uses it as source when it connects to it.
 */
export function allowedSources({ sourceRanges, loadBalancerVips }: ServicePortPlan, { nodeIp }: NodePlan): Cidr[] {
  const ranges = sourceRanges.map(({ address, prefixLength }) => ({
    address: networkOf(address, prefixLength),
    prefixLength,
  }));
  if (nodeIp && ranges.some((range) => cidrContains(range, nodeIp))) {
    for (const address of loadBalancerVips) ranges.push({ address, prefixLength: addressBits(address.family) });
  }
  return withoutNested(ranges);
}

/**
 * Of blocks, two of which have no address in common unless one is within the other, those within no other, each once.
 * Sorted by first address, and of two with the same the larger first, a block that holds another comes before it, and
 * between the two is nothing but what it holds.
 */
function withoutNested(ranges: Cidr[]): Cidr[] {
  ranges.sort((a, b) => compareIp(a.address, b.address) || a.prefixLength - b.prefixLength);
  const kept: Cidr[] = [];
  for (const range of ranges) {
    const last = kept.at(-1);
    if (!last || !cidrContains(last, range.address)) kept.push(range);
  }
  return kept;
}

/** The first and the last key of a range of sources that may use an address. */
export function rangeKeys(vip: Uint8Array, range: Cidr): { readonly key: Uint8Array; readonly keyEnd: Uint8Array } {
  return sourceRangeKeys(vip, range.address.bytes, lastOf(range).bytes);
}
