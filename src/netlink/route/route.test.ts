import { describe, expect, it } from 'vitest';
import { capturedHex, capturedPayload, wireHex } from '../../../test/fakes/netlink-golden.ts';
import { parseCidr, parseIp } from '../../core/index.ts';
import { RTN_BLACKHOLE, RTN_LOCAL, RTN_UNREACHABLE } from '../uapi/rtnetlink.ts';
import { decodeRoute, deleteRoute, newRoute, type RouteSpec, routeListing } from './route.ts';

// Captured from iproute2 6.1.0 with `strace -e trace=sendmsg -e write=all <command>` where lo has index 1 and cni0 4.

const DEFAULT_IPV4 = '2c000000180005065692006b0000000002000000fe04000100000000080005000a0100fe0800040004000000';
const FULL =
  '60000000180005065692006b00000000021000000004000100000000080001000a040000080005000a010003080007000a010001' +
  '080006003200000008000f00e803000008000400040000001400080008000200780500000800080050050000';
/** As the kernel lists it: ip -4 route show proto 80. */
const BY_NEXTHOP =
  '500000001800220012b9026b0d50000002180000fe5000010400000008000f00fe000000080001000a0300000c0008000800020078050000' +
  '08001e000100504e08000500c00002010800040003000000';

describe('newRoute', () => {
  it.each<[RouteSpec, string]>([
    // ip route add default via 10.1.0.254 dev cni0 proto static
    [{ destination: parseCidr('0.0.0.0/0'), gateway: parseIp('10.1.0.254'), outInterface: 4 }, DEFAULT_IPV4],
    // ip route add 10.2.0.0/16 dev cni0 proto static
    [
      { destination: parseCidr('10.2.0.0/16'), outInterface: 4 },
      '2c000000180005065692006b0000000002100000fe04fd0100000000080001000a0200000800040004000000',
    ],
    // ip route add 10.3.0.0/16 via 192.0.2.1 dev cni0 onlink proto static
    [
      { destination: parseCidr('10.3.0.0/16'), gateway: parseIp('192.0.2.1'), outInterface: 4, onlink: true },
      '34000000180005065692006b0000000002100000fe04000104000000080001000a03000008000500c00002010800040004000000',
    ],
    // ip route replace 10.4.0.0/16 via 10.1.0.4 dev cni0 proto static
    [
      { destination: parseCidr('10.4.0.0/16'), gateway: parseIp('10.1.0.4'), outInterface: 4, replace: true },
      '34000000180005055692006b0000000002100000fe04000100000000080001000a040000080005000a0100040800040004000000',
    ],
    // ip route add blackhole 10.5.0.0/16 proto static metric 100
    [
      { destination: parseCidr('10.5.0.0/16'), type: RTN_BLACKHOLE, priority: 100 },
      '2c000000180005065692006b0000000002100000fe04000600000000080001000a0500000800060064000000',
    ],
    // ip -6 route add fd02::/64 dev cni0 proto static
    [
      { destination: parseCidr('fd02::/64'), outInterface: 4 },
      '38000000180005065692006b000000000a400000fe0400010000000014000100fd0200000000000000000000000000000800040004000000',
    ],
    // ip route add local 10.6.0.0/24 dev lo proto static
    [
      { destination: parseCidr('10.6.0.0/24'), outInterface: 1, type: RTN_LOCAL, table: 255 },
      '2c000000180005065692006b0000000002180000ff04fe0200000000080001000a0600000800040001000000',
    ],
    // ip route add 10.3.0.0/24 nhid 1313865729 proto 80 mtu 1400
    [
      { destination: parseCidr('10.3.0.0/24'), nexthopId: 0x4e50_0001, protocol: 80, mtu: 1400 },
      '3800000018000506e9b7026b0000000002180000fe50000100000000080001000a03000008001e000100504e' +
        '0c0008000800020078050000',
    ],
    // ip route add unreachable 10.4.0.0/24 proto 80 metric 50
    [
      { destination: parseCidr('10.4.0.0/24'), type: RTN_UNREACHABLE, protocol: 80, priority: 50 },
      '2c00000018000506e9b7026b0000000002180000fe50000700000000080001000a0400000800060032000000',
    ],
    // ip -6 route add unreachable fd05::/64 proto 80
    [
      { destination: parseCidr('fd05::/64'), type: RTN_UNREACHABLE, protocol: 80 },
      '3000000018000506e9b7026b000000000a400000fe5000070000000014000100fd050000000000000000000000000000',
    ],
  ])('%o', (spec, captured) => {
    expect(wireHex(newRoute(spec))).toBe(capturedHex(captured));
  });

  it('with everything', () => {
    // ip route add 10.4.0.0/16 via 10.1.0.3 src 10.1.0.1 metric 50 table 1000 proto static mtu 1400 advmss 1360 dev cni0
    const request = newRoute({
      destination: parseCidr('10.4.0.0/16'),
      gateway: parseIp('10.1.0.3'),
      outInterface: 4,
      source: parseIp('10.1.0.1'),
      priority: 50,
      table: 1000,
      mtu: 1400,
      advmss: 1360,
    });
    expect(wireHex(request)).toBe(capturedHex(FULL));
    expect(request.object).toBe('10.4.0.0/16 via 10.1.0.3 on link 4 in table 1000');
  });

  it('an IPv6 default route', () => {
    // `ip -6 route add default via fd00::2 dev cni0 proto static` sends an RTA_DST of :: too; without it, by hand:
    const expected =
      '38000000180005060000000000000000' +
      '0a000000fe04000100000000' +
      '14000500fd000000000000000000000000000002' +
      '0800040004000000';
    const spec = { destination: parseCidr('::/0'), gateway: parseIp('fd00::2'), outInterface: 4 };
    expect(wireHex(newRoute(spec))).toBe(expected);
  });

  it('refuses addresses of another family', () => {
    const encode = (change: object) => () => newRoute({ destination: parseCidr('10.0.0.0/8'), ...change });
    const refused = expect.objectContaining({ code: 'ERR_ENCODE', message: expect.stringContaining('"fd00::1"') });
    expect(encode({ gateway: parseIp('fd00::1') })).toThrow(refused);
    expect(encode({ source: parseIp('fd00::1') })).toThrow(refused);
  });
});

describe('deleteRoute', () => {
  it.each<[RouteSpec, string]>([
    // ip route del 10.2.0.0/16 dev cni0
    [
      { destination: parseCidr('10.2.0.0/16'), outInterface: 4 },
      '2c000000190005005692006b0000000002100000fe00ff0000000000080001000a0200000800040004000000',
    ],
    // ip -6 route del fd02::/64 dev cni0
    [
      { destination: parseCidr('fd02::/64'), outInterface: 4 },
      '38000000190005005692006b000000000a400000fe0000000000000014000100fd0200000000000000000000000000000800040004000000',
    ],
    // ip route del 10.3.0.0/24 nhid 1313865729
    [
      { destination: parseCidr('10.3.0.0/24'), nexthopId: 0x4e50_0001 },
      '2c00000019000500e9b7026b0000000002180000fe00ff0000000000080001000a03000008001e000100504e',
    ],
  ])('%o', (spec, captured) => {
    expect(wireHex(deleteRoute(spec))).toBe(capturedHex(captured));
  });
});

describe('decodeRoute', () => {
  it('reads back what was captured', () => {
    expect(decodeRoute(capturedPayload(FULL))).toEqual({
      family: 'IPv4',
      destination: parseCidr('10.4.0.0/16'),
      gateway: parseIp('10.1.0.3'),
      nexthopId: 0,
      outInterface: 4,
      table: 1000,
      protocol: 4,
      scope: 0,
      type: 1,
      priority: 50,
      tos: 0,
      otherMetrics: [],
      source: parseIp('10.1.0.1'),
      onlink: false,
      mtu: 1400,
      advmss: 1360,
      unknown: [],
    });
    expect(decodeRoute(capturedPayload(DEFAULT_IPV4)).destination).toEqual(parseCidr('0.0.0.0/0'));
  });

  it('reads nexthop objects, with the gateway the kernel tells beside them', () => {
    expect(decodeRoute(capturedPayload(BY_NEXTHOP))).toMatchObject({
      destination: parseCidr('10.3.0.0/24'),
      nexthopId: 0x4e50_0001,
      gateway: parseIp('192.0.2.1'),
      outInterface: 3,
      onlink: true,
      protocol: 80,
      mtu: 1400,
      unknown: [],
    });
  });

  it('keeps attributes it does not know', () => {
    // By hand: rtmsg{IPv4}, RTA_PREF (20) u8 1.
    const payload = Buffer.from('02000000fe040001000000000500140001000000', 'hex');
    expect(decodeRoute(payload).unknown).toEqual([{ type: 20, value: Buffer.from([1]) }]);
  });
});

describe('routeListing', () => {
  it('filters in the kernel', () => {
    // By hand: rtmsg{AF_INET6, protocol 80}, RTA_TABLE (15) 254, RTA_OIF (4) 7.
    const { payload } = routeListing({ family: 'IPv6', table: 254, protocol: 80, outInterface: 7 });
    expect(Buffer.from(payload).toString('hex')).toBe(
      '0a0000000050000000000000' + '08000f00fe000000' + '0800040007000000',
    );
  });
});
