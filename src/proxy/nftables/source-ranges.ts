import { addressBits, type Cidr, cidrContains, networkOf } from '../../core/index.ts';
import type { NodePlan, ServicePortPlan } from '../index.ts';
import { sourceRangeKeys } from './keys.ts';

/**
 * The ranges whose members may use the load-balancer IPs, none within another: the kernel refuses overlaps. A node that
 * holds the IP as an address of its own uses it as source when it connects to it.
 */
export function allowedSources({ sourceRanges, loadBalancerVips }: ServicePortPlan, { nodeIp }: NodePlan): Cidr[] {
  const ranges = sourceRanges.map(({ address, prefixLength }) => ({
    address: networkOf(address, prefixLength),
    prefixLength,
  }));
  if (nodeIp && ranges.some((range) => cidrContains(range, nodeIp))) {
    ranges.push(...loadBalancerVips.map((address) => ({ address, prefixLength: addressBits(address.family) })));
  }
  return ranges.filter(
    (range, index) =>
      !ranges.some((other, at) => {
        if (at === index || other.address.family !== range.address.family) return false;
        if (other.prefixLength === range.prefixLength && at > index) return false;
        return other.prefixLength <= range.prefixLength && cidrContains(other, range.address);
      }),
  );
}

/** The first and the last key of a range of sources that may use an address. */
export function rangeKeys(
  vip: Uint8Array,
  { address, prefixLength }: Cidr,
): { readonly key: Uint8Array; readonly keyEnd: Uint8Array } {
  const last = address.bytes.map((byte, index) => byte | (0xff >> Math.min(8, Math.max(0, prefixLength - 8 * index))));
  return sourceRangeKeys(vip, address.bytes, last);
}
