import { expect, it } from 'vitest';
import { parseIp } from '../../../core/index.ts';
import { nextHopsOf } from './next-hops.ts';

it('reads the next hops of a route that has several, with a gateway and without', () => {
  // ip route add 10.0.0.0/8 nexthop via 192.168.50.77 dev eth0 nexthop dev eth1, by hand after <linux/rtnetlink.h>
  const value = Buffer.from('1000000002000000 08000500c0a8324d 0800000003000000'.replaceAll(' ', ''), 'hex');
  expect(nextHopsOf({ family: 'IPv4', unknown: [{ type: 9, value }] })).toEqual([
    { gateway: parseIp('192.168.50.77'), outInterface: 2 },
    { gateway: undefined, outInterface: 3 },
  ]);
  expect(nextHopsOf({ family: 'IPv4', unknown: [] })).toEqual([]);
});
