import { type Cidr, formatCidr, type IpFamily, networkOf } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { listRoutes } from '../../netlink/route/index.ts';
import { RT_TABLE_MAIN } from '../../netlink/uapi/index.ts';
import { RTPROT_NODEPLANE } from '../kernel/route-object.ts';

/**
 * Routes of others that take a part of a range another way, by the range in words: they are more specific, as those that Calico leaves for
 * its blocks.
 *
 * @param ranges that our routes are for
 * @throws KernelError
 */
export function takenRanges(netlink: Netlink, family: IpFamily, ranges: readonly Cidr[]): ReadonlyMap<string, Cidr> {
  const taken = new Map<string, Cidr>();
  if (ranges.length === 0) return taken;
  const ours = new Set(ranges.map(formatCidr));
  const lengths = [...new Set(ranges.map(({ prefixLength }) => prefixLength))];
  for (const { protocol, destination } of listRoutes(netlink, { family, table: RT_TABLE_MAIN })) {
    if (protocol === RTPROT_NODEPLANE) continue;
    for (const prefixLength of lengths) {
      if (prefixLength >= destination.prefixLength) continue;
      const range = formatCidr({ address: networkOf(destination.address, prefixLength), prefixLength });
      if (ours.has(range)) taken.set(range, destination);
    }
  }
  return taken;
}
