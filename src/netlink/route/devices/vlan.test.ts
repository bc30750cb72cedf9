import { expect, it } from 'vitest';
import { capturedHex, wireHex } from '../../../../test/fakes/netlink-golden.ts';
import { newVlan } from './vlan.ts';

it('newVlan is what iproute2 sends', () => {
  // ip link add link br0 name br0.100 type vlan id 100; captured from iproute2 6.1.0 where br0 has index 2.
  const captured =
    '4c00000010000506eee2006b000000000000000000000000000000000000000008000500020000000c0003006272302e31303000' +
    '1800120008000100766c616e0c0002000600010064000000';
  expect(wireHex(newVlan({ name: 'br0.100', link: 2, id: 100 }))).toBe(capturedHex(captured));
});
