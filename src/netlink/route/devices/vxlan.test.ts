import { describe, expect, it } from 'vitest';
import { capturedHex, wireHex } from '../../../../test/fakes/netlink-golden.ts';
import { parseIp } from '../../../core/index.ts';
import { decodeLink } from '../link.ts';
import { newDummy } from './dummy.ts';
import { decodeVxlan, newVxlan, setVxlan, type VxlanSpec } from './vxlan.ts';

// Captured from iproute2 6.1.0 on Linux 6.18 with `strace -e trace=sendmsg,recvmsg -e write=all -e read=all <command>` where eth0
// has index 3.

const mac = Uint8Array.of(2, 0, 0, 0, 0, 1);
const FULL: VxlanSpec = {
  name: 'vx0',
  mac,
  mtu: 1450,
  vni: 4096,
  link: 3,
  local: parseIp('10.1.0.1'),
  port: 4789,
  ttl: 64,
};

describe('newVxlan', () => {
  it('over IPv4', () => {
    // ip link add vx0 address 02:00:00:00:00:01 mtu 1450 type vxlan id 4096 dev eth0 local 10.1.0.1 dstport 4789 nolearning \
    //   ttl 64 df set udpcsum, less the last two
    const request = newVxlan(FULL);
    expect(wireHex(request)).toBe(
      capturedHex(
        '8000000010000506e9b7026b00000000000000000000000000000000000000000a000100020000000001000008000400aa050000' +
          '0800030076783000440012000900010076786c616e0000003400020008000300030000000500050040000000' +
          '0800010000100000080004000a010001050007000000000006000f0012b50000',
      ),
    );
    expect(request.object).toBe('VXLAN 4096 at port 4789 "vx0"');
  });

  it('over IPv6', () => {
    // ip link add vx6 type vxlan id 4097 local fd00::1 dstport 8472 nolearning udp6zerocsumtx udp6zerocsumrx, less the last
    // two and with an address
    const request = newVxlan({
      name: 'vx6',
      mac,
      vni: 4097,
      local: parseIp('fd00::1'),
      port: 8472,
    });
    expect(wireHex(request)).toBe(
      capturedHex(
        '7400000010000506e9b7026b00000000000000000000000000000000000000000a00010002000000000100000800030076783600' +
          '400012000900010076786c616e00000030000200080001000110000014001100fd000000' +
          '000000000000000000000001050007000000000006000f0021180000',
      ),
    );
  });

  it.each([
    [{ port: 65_536 }, 'IFLA_VXLAN_PORT'],
    [{ ttl: 256 }, 'IFLA_VXLAN_TTL'],
  ])('refuses %o', (change, attribute) => {
    expect(() => newVxlan({ ...FULL, ...change })).toThrow(
      expect.objectContaining({ code: 'ERR_ENCODE', message: expect.stringContaining(attribute) }),
    );
  });
});

it('setVxlan sends what is to change alone', () => {
  // ip link set vx0 type vxlan id 4096 local 10.1.0.9 ttl 32 learning dev eth0, in our order, without the VNI
  const change = { link: 3, local: parseIp('10.1.0.9'), ttl: 32, learning: true };
  expect(wireHex(setVxlan(4, change))).toBe(
    capturedHex(
      '5400000010000500e9b7026b0000000000000000040000000000000000000000340012000900010076786c616e00000024000200' +
        '08000300030000000500050020000000080004000a0100090500070001000000',
    ),
  );
  expect(Buffer.from(setVxlan(4, { learning: false }).payload).toString('hex')).toBe(
    '00000000040000000000000000000000' + '1c001200' + '0900010076786c616e000000' + '0c000200' + '0500070000000000',
  );
});

/** The IFLA_INFO_DATA of `ip -d link show` for the device of the first test. */
const LISTED =
  '0800010000100000' +
  '0800030003000000' +
  '080004000a010001' +
  '0500050040000000' +
  '05001c0000000000' +
  '0500060000000000' +
  '05001d0001000000' +
  '08001a0000000000' +
  '0800200000000000' +
  '0500070000000000' +
  '05000b0000000000' +
  '05000c0000000000' +
  '05000d0000000000' +
  '05000e0000000000' +
  '0500190000000000' +
  '080008002c010000' +
  '0800090000000000' +
  '06000f0012b50000' +
  '0500120001000000' +
  '0500130000000000' +
  '0500140000000000' +
  '0500150000000000' +
  '0500160000000000' +
  '05001f0001000000' +
  '08000a0000000000';

describe('decodeVxlan', () => {
  it('reads what the kernel lists', () => {
    const { unknown, ...vxlan } = decodeVxlan(Buffer.from(LISTED, 'hex'));
    expect(vxlan).toEqual({
      vni: 4096,
      port: 4789,
      link: 3,
      local: parseIp('10.1.0.1'),
      remote: undefined,
      learning: false,
      ttl: 64,
      groupPolicy: false,
      metadata: false,
      additions: ['df 1'],
    });
    expect(unknown.map(({ type }) => type)).toContain(8);
  });

  it('sees what makes a device somebody else’s', () => {
    // ip link add gb type vxlan id 5 group 239.1.1.1 dev eth0 dstport 8472 gbp (its first attributes, and IFLA_VXLAN_GBP)
    const flooding = Buffer.from('0800010005000000' + '08000200ef010101' + '0800030003000000' + '04001700', 'hex');
    expect(decodeVxlan(flooding)).toMatchObject({
      vni: 5,
      remote: parseIp('239.1.1.1'),
      link: 3,
      groupPolicy: true,
      additions: ['remote 239.1.1.1', 'gbp'],
    });
    // ip link add md type vxlan external dstport 4790
    const external = Buffer.from('0800010000000000' + '0500190001000000' + '06000f0012b60000', 'hex');
    expect(decodeVxlan(external)).toMatchObject({ vni: 0, metadata: true, port: 4790, remote: undefined });
  });

  it('is part of a link of that kind alone', () => {
    expect(decodeLink(newVxlan(FULL).payload).vxlan).toMatchObject({ vni: 4096, local: parseIp('10.1.0.1') });
    expect(decodeLink(newDummy('d0').payload).vxlan).toBeUndefined();
  });

  it('refuses a local address of 5 bytes', () => {
    expect(() => decodeVxlan(Buffer.from('090004000a01000100000000', 'hex'))).toThrow(
      'Cannot decode IFLA_VXLAN_LOCAL: it has 5 bytes, expected 4 for IPv4',
    );
  });
});
