import { type IpAddress, readU16, readU32 } from '../../../core/index.ts';
import { decodeIp } from '../../address-family.ts';
import { RTA } from '../../uapi/rtnetlink.ts';
import type { Route } from '../route.ts';

/** <linux/rtnetlink.h> */
const RTA_MULTIPATH = 9;
/** struct rtnexthop { __u16 rtnh_len; __u8 rtnh_flags, rtnh_hops; __s32 rtnh_ifindex; }; attributes follow. */
const HEADER = 8;

/** One of the ways of a route. */
export interface NextHop {
  /** Of the route's own family; undefined: it has none. */
  readonly gateway: IpAddress | undefined;
  /** Index of the link. */
  readonly outInterface: number;
}

/** The next hops of a route that has several; none of any other. Throws ERR_NETLINK_DECODE. */
export function nextHopsOf({ family, unknown }: Pick<Route, 'family' | 'unknown'>): readonly NextHop[] {
  const bytes = unknown.find(({ type }) => type === RTA_MULTIPATH)?.value ?? new Uint8Array();
  const hops: NextHop[] = [];
  for (let at = 0; at + HEADER <= bytes.length; ) {
    const length = Math.max(HEADER, readU16(bytes, at));
    const { RTA_GATEWAY } = RTA.decode(bytes.subarray(at, at + length), HEADER);
    hops.push({
      gateway: RTA_GATEWAY && decodeIp(family, RTA_GATEWAY, 'RTA_GATEWAY'),
      outInterface: readU32(bytes, at + 4),
    });
    at += Math.ceil(length / 4) * 4;
  }
  return hops;
}
