import { describe, expect, it } from 'vitest';
import { expectSafeDecoder } from '../../../../test/fakes/decoder-properties.ts';
import { capturedHex, wireHex } from '../../../../test/fakes/netlink-golden.ts';
import { newBridge, setBridge, setLink } from '../link-change.ts';
import {
  bridgeVlanListing,
  decodeBridgeVlans,
  deleteBridgeVlan,
  newBridgeVlan,
  newOwnBridgeVlan,
} from './bridge-vlan.ts';

// Captured from iproute2 6.1.0 with `strace -e trace=sendmsg -e write=all <command>` where v0 has index 4.

describe('requests about VLANs of bridge ports', () => {
  it('an access VLAN', () => {
    // bridge vlan add dev v0 vid 100 pvid untagged
    const captured = '2c00000013000500e8b8006b000000000700000004000000000000000000000' + '00c001a000800020006006400';
    const request = newBridgeVlan({ index: 4, first: 100, last: 100, pvid: true, untagged: true });
    expect(wireHex(request)).toBe(capturedHex(captured));
    expect(request.object).toBe('VLAN 100 of bridge port 4');
  });

  it('a span of tagged ones', () => {
    // bridge vlan add dev v0 vid 10-20
    const captured =
      '3400000013000500e8b8006b00000000070000000400000000000000000000' + '0014001a000800020008000a000800020010001400';
    const request = newBridgeVlan({ index: 4, first: 10, last: 20, pvid: false, untagged: false });
    expect(wireHex(request)).toBe(capturedHex(captured));
    expect(request.object).toBe('VLAN 10-20 of bridge port 4');
  });

  it('one of the bridge itself', () => {
    // bridge vlan add dev br0 vid 100 self, where br0 has index 2
    const captured =
      '3400000013000500efe2006b0000000007000000020000000000000000000000' + '14001a0006000000020000000800020000006400';
    const request = newOwnBridgeVlan(2, 100);
    expect(wireHex(request)).toBe(capturedHex(captured));
    expect(request.object).toBe('VLAN 100 of bridge 2');
  });

  it('the end of a membership', () => {
    // bridge vlan del dev v0 vid 1
    const captured = '2c00000011000500e8b8006b00000000070000000400000000000000000000000c001a000800020000000100';
    expect(wireHex(deleteBridgeVlan({ index: 4, first: 1, last: 1 }))).toBe(capturedHex(captured));
  });

  it('a listing', () => {
    // By hand: nlmsghdr, ifinfomsg of family AF_BRIDGE, IFLA_EXT_MASK (29) of 4 | 8.
    const expected = '28000000120001000000000000000000' + '07000000000000000000000000000000' + '08001d000c000000';
    expect(wireHex(bridgeVlanListing).slice(32)).toBe(expected.slice(32));
  });
});

/** An RTM_NEWLINK of family AF_BRIDGE about link 4 with these entries of IFLA_AF_SPEC, each flags and VLAN ID. */
function answer(...infos: readonly (readonly [flags: number, vid: number])[]): Uint8Array {
  const entry = ([flags, vid]: readonly [number, number]) => [8, 0, 2, 0, flags, 0, vid & 0xff, vid >> 8];
  const header = [7, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  return Uint8Array.from([...header, 4 + 8 * infos.length, 0, 26, 0, ...infos.flatMap(entry)]);
}

describe('decodeBridgeVlans', () => {
  it('reads single VLANs and spans', () => {
    expect(decodeBridgeVlans(answer([6, 100], [8, 200], [16, 300]))).toEqual([
      { index: 4, first: 100, last: 100, pvid: true, untagged: true },
      { index: 4, first: 200, last: 300, pvid: false, untagged: false },
    ]);
    expect(decodeBridgeVlans(answer())).toEqual([]);
  });

  it('is safe with whatever comes', () => {
    expectSafeDecoder(decodeBridgeVlans, [answer([6, 100], [8, 200], [16, 300])]);
  });
});

describe('requests about VLANs of bridges', () => {
  it('a bridge that looks at VLANs is made with one attribute more', () => {
    // Captured as in link-change.test.ts, with `vlan_filtering 1`: IFLA_BR_VLAN_FILTERING (7), one byte.
    const mac = Uint8Array.of(2, 0, 0, 0, 0, 1);
    expect(wireHex(newBridge({ name: 'cni0', mac, vlanFiltering: true }))).toContain('0500070001000000');
    expect(wireHex(newBridge({ name: 'cni0', mac }))).not.toContain('0500070001000000');
  });

  it('one that exists is told so by a request that makes nothing', () => {
    // By hand: IFLA_LINKINFO (18) { IFLA_INFO_KIND (1) "bridge", IFLA_INFO_DATA (2) { IFLA_BR_VLAN_FILTERING (7) 1 } }.
    const expected = '1c0012000a00010062726964676500000c0002000500070001000000';
    expect(wireHex(setBridge(4, { vlanFiltering: true })).slice(64)).toBe(expected);
    expect(setBridge(4, { vlanFiltering: true }).flags).toBe(0);
  });
});

describe('setLink', () => {
  it('makes a link promiscuous without touching its other flags', () => {
    // ip link set cni0 promisc on: ifi_flags and ifi_change are both IFF_PROMISC.
    expect(wireHex(setLink(4, { promiscuous: true })).slice(48)).toBe('0001000000010000');
    expect(wireHex(setLink(4, { promiscuous: false, up: true })).slice(48)).toBe('0100000001010000');
  });

  it('names a link by its name when told so', () => {
    // By hand: ifinfomsg of zeros, IFLA_IFALIAS (20) "a", IFLA_IFNAME (3) "eth0\0".
    expect(wireHex(setLink({ name: 'eth0' }, { alias: 'a' })).slice(32)).toBe(
      '00000000000000000000000000000000' + '0500140061000000' + '0900030065746830' + '00000000',
    );
  });
});
