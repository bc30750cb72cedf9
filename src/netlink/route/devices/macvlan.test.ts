import { expect, it } from 'vitest';
import { capturedHex, wireHex } from '../../../../test/fakes/netlink-golden.ts';
import { newMacvlan } from './macvlan.ts';

it('newMacvlan is what iproute2 sends', () => {
  // ip link add link br0 name mv0 address 0e:01:02:03:04:05 type macvlan mode private; captured from iproute2 6.1.0 where br0
  // has index 2.
  const captured =
    '58000000100005067334036b00000000000000000000000000000000000000000a0001000e01020304050000080005000200000008000300' +
    '6d7630001c0012000b0001006d6163766c616e000c0002000800010001000000';
  const mac = Uint8Array.of(0x0e, 1, 2, 3, 4, 5);
  expect(wireHex(newMacvlan({ name: 'mv0', link: 2, mode: 'private', mac }))).toBe(capturedHex(captured));
});
