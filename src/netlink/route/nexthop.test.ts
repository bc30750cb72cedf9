import { describe, expect, it } from 'vitest';
import { answer, done, FakeNetlink, frame } from '../../../test/fakes/fake-netlink.ts';
import { capturedHex, capturedPayload, wireHex } from '../../../test/fakes/netlink-golden.ts';
import { parseIp } from '../../core/index.ts';
import { Netlink } from '../netlink.ts';
import { NLM_F_MULTI } from '../uapi/netlink.ts';
import { RTM_NEWNEXTHOP } from '../uapi/rtnetlink.ts';
import { decodeNexthop, deleteNexthop, listNexthops, type NexthopSpec, newNexthop, nexthopListing } from './nexthop.ts';

// Captured from iproute2 6.1.0 on Linux 6.18 with `strace -e trace=sendmsg,recvmsg -e write=all -e read=all <command>` where eth0
// has index 3.

const ID = 0x4e50_0001;

describe('newNexthop', () => {
  it.each<[NexthopSpec, string]>([
    // ip nexthop add id 1313865729 via 10.1.0.2 dev eth0 proto 80
    [
      { id: ID, gateway: parseIp('10.1.0.2'), outInterface: 3, protocol: 80 },
      '3000000068000506e9b7026b000000000200500000000000080001000100504e080006000a0100020800050003000000',
    ],
    // ip nexthop replace id 1313865729 via 192.0.2.1 dev eth0 onlink proto 80
    [
      { id: ID, gateway: parseIp('192.0.2.1'), outInterface: 3, protocol: 80, onlink: true, replace: true },
      '3000000068000505e9b7026b000000000200500004000000080001000100504e08000600c00002010800050003000000',
    ],
    // ip nexthop add id 2 via fd00::2 dev eth0, with protocol static in place of unspec
    [
      { id: 2, gateway: parseIp('fd00::2'), outInterface: 3 },
      '3c00000068000506e9b7026b000000000a000400000000000800010002000000' +
        '14000600fd0000000000000000000000000000020800050003000000',
    ],
  ])('%o', (spec, captured) => {
    expect(wireHex(newNexthop(spec))).toBe(capturedHex(captured));
  });

  it('has no number 2^32', () => {
    expect(() => newNexthop({ id: 2 ** 32, gateway: parseIp('10.1.0.2'), outInterface: 3 })).toThrow(
      expect.objectContaining({ code: 'ERR_ENCODE', message: expect.stringContaining('NHA_ID') }),
    );
  });
});

it('deleteNexthop', () => {
  // ip nexthop del id 2
  const captured = '2000000069000500e9b7026b0000000000000000000000000800010002000000';
  expect(wireHex(deleteNexthop(2))).toBe(capturedHex(captured));
});

it('nexthopListing filters in the kernel', () => {
  // By hand: nhmsg{AF_INET}, NHA_OIF (5) 3.
  const { payload } = nexthopListing({ family: 'IPv4', outInterface: 3 });
  expect(Buffer.from(payload).toString('hex')).toBe('0200000000000000' + '0800050003000000');
});

/** From `ip nexthop show`. */
const LISTED = {
  onlink: '300000006800020012b9026b0050000002fd500004000000080001000100504e080005000300000008000600c0000201',
  ipv6:
    '3c0000006800020012b9026b005000000afd000000000000080001000200000008000500030000001400' +
    '0600fd000000000000000000000000000002',
  // ip nexthop add id 9 group 1313865729/3
  group:
    '440000006800020012b9026b005000000000000000000000080001000900000006000300000000001400' +
    '02000100504e00000000030000000000000008000e0000000080',
  // ip nexthop add id 10 blackhole
  blackhole: '240000006800020012b9026b005000000200000000000000080001000a00000004000400',
};

describe('decodeNexthop', () => {
  it('reads what the kernel lists', () => {
    expect(decodeNexthop(capturedPayload(LISTED.onlink))).toEqual({
      id: ID,
      family: 'IPv4',
      gateway: parseIp('192.0.2.1'),
      outInterface: 3,
      onlink: true,
      protocol: 80,
      unknown: [],
    });
    expect(decodeNexthop(capturedPayload(LISTED.ipv6))).toEqual({
      id: 2,
      family: 'IPv6',
      gateway: parseIp('fd00::2'),
      outInterface: 3,
      onlink: false,
      protocol: 0,
      unknown: [],
    });
  });

  it('reads groups and blackholes as going nowhere, and keeps what they are', () => {
    const group = decodeNexthop(capturedPayload(LISTED.group));
    expect(group).toMatchObject({ id: 9, family: undefined, gateway: undefined, outInterface: 0 });
    expect(group.unknown.map(({ type }) => type)).toEqual([3, 2, 14]);
    const blackhole = decodeNexthop(capturedPayload(LISTED.blackhole));
    expect(blackhole).toMatchObject({ id: 10, gateway: undefined, outInterface: 0, unknown: [{ type: 4 }] });
  });

  it('refuses one without id, and a gateway of 5 bytes', () => {
    expect(() => decodeNexthop(Buffer.from('0200000000000000', 'hex'))).toThrow(
      'Cannot decode RTM_NEWNEXTHOP: it has no NHA_ID',
    );
    const bent = Buffer.from('0200000000000000' + '0800010001000000' + '090006000a01000200000000', 'hex');
    expect(() => decodeNexthop(bent)).toThrow('Cannot decode NHA_GATEWAY: it has 5 bytes, expected 4 for IPv4');
  });
});

describe('asking', () => {
  it('lists all parts', () => {
    const parts = Object.values(LISTED).map(capturedPayload);
    const fake = new FakeNetlink(([request]) => [
      frame(...parts.map((part) => answer(request!, RTM_NEWNEXTHOP, part, NLM_F_MULTI)), done(request!)),
    ]);
    expect(listNexthops(new Netlink(fake)).map(({ id }) => id)).toEqual([ID, 2, 9, 10]);
  });
});
