import { describe, expect, it } from 'vitest';
import { capturedHex, wireHex } from '../../../test/fakes/netlink-golden.ts';
import { RTM_SETLINK } from '../uapi/rtnetlink.ts';
import { deleteLink, newBridge, newVeth, setBridgePort, setLink } from './link-change.ts';

// Captured from iproute2 6.1.0 with `strace -e trace=sendmsg -e write=all <command>` in a namespace where cni0 has index
// 4, veth1a2b index 5 and the target namespace descriptor 4.

const mac = (last: number) => Uint8Array.of(2, 0, 0, 0, 0, last);

describe('requests that make links', () => {
  it('a bridge', () => {
    // ip link add cni0 address 02:00:00:00:00:01 mtu 1450 up type bridge forward_delay 0 stp_state 0
    const captured =
      '64000000100005065592006b00000000000000000000000001000000010000000a000100020000000001000008000400aa05000009000300' +
      '636e693000000000240012000a00010062726964676500001400020008000100000000000800050000000000';
    expect(wireHex(newBridge({ name: 'cni0', mac: mac(1), mtu: 1450, up: true }))).toBe(capturedHex(captured));
  });

  it('a veth with its peer in another namespace', () => {
    // ip link add veth1a2b address 02:00:00:00:00:02 mtu 1400 master cni0 up type veth
    //   peer name eth0 address 02:00:00:00:00:03 mtu 1400 netns peer
    const captured =
      '98000000100005065592006b00000000000000000000000001000000010000000a0001000200000000020000080004007805000008000a00' +
      '040000000d0003007665746831613262000000004c0012000800010076657468400002003c00010000000000000000000000000000000000' +
      '0a0001000200000000030000080004007805000008001c0004000000090003006574683000000000';
    const request = newVeth({
      name: 'veth1a2b',
      mac: mac(2),
      mtu: 1400,
      master: 4,
      up: true,
      peer: { name: 'eth0', mac: mac(3), mtu: 1400, netnsFd: 4 },
    });
    expect(wireHex(request)).toBe(capturedHex(captured));
    expect(request.operation).toBe('RTM_NEWLINK');
    expect(request.object).toBe('veth "veth1a2b" with peer "eth0"');
  });

  it('a veth with a number of queues', () => {
    // ip link add veth1a2c address 02:00:00:00:00:02 mtu 1400 master cni0 numtxqueues 1 numrxqueues 1 type veth
    //   peer name eth1 address 02:00:00:00:00:03 mtu 1400 netns peer numtxqueues 1 numrxqueues 1
    // where cni0 has index 2.
    const captured =
      'b80000001000050642ec006b00000000000000000000000000000000000000000a0001000200000000020000080004007805000008000a00' +
      '0200000008001f000100000008002000010000000d0003007665746831613263000000005c001200080001007665746850000200' +
      '4c000100000000000000000000000000000000000a0001000200000000030000080004007805000008001c0004000000' +
      '08001f00010000000800200001000000090003006574683100000000';
    const request = newVeth({
      name: 'veth1a2c',
      mac: mac(2),
      mtu: 1400,
      master: 2,
      queues: 1,
      peer: { name: 'eth1', mac: mac(3), mtu: 1400, netnsFd: 4 },
    });
    expect(wireHex(request)).toBe(capturedHex(captured));
  });

  it('refuses values that do not fit', () => {
    const encode = (change: object) => () => newBridge({ name: 'br0', mac: mac(1), ...change });
    expect(encode({ mtu: -1 })).toThrow(expect.objectContaining({ code: 'ERR_ENCODE' }));
    expect(encode({ mtu: 1.5 })).toThrow('Cannot write "1.5" as IFLA_MTU: need an integer from 0 to 4294967295');
    expect(encode({ name: 'a\0b' })).toThrow('Cannot write "a\\u0000b" as IFLA_IFNAME: it contains a NUL');
    expect(encode({ name: 'x'.repeat(70_000) })).toThrow(/Cannot write 70001 bytes as IFLA_IFNAME/);
  });
});

describe('setLink', () => {
  // iproute2 uses RTM_NEWLINK without NLM_F_CREATE for changes; RTM_SETLINK has the same layout and says what it does.
  it.each([
    // ip link set veth1a2b alias ns/pod
    [{ alias: 'ns/pod' }, '2c000000100005005592006b00000000000000000500000000000000000000000a0014006e732f706f640000'],
    // ip link set veth1a2b down
    [{ up: false }, '20000000100005005592006b0000000000000000050000000000000001000000'],
    // ip link set veth1a2b mtu 1300
    [{ mtu: 1300 }, '28000000100005005592006b00000000000000000500000000000000000000000800040014050000'],
    // ip link set veth1a2b address 02:00:00:00:00:09
    [{ mac: mac(9) }, '2c000000100005005692006b00000000000000000500000000000000000000000a0001000200000000090000'],
    // ip link set veth1a2b nomaster
    [{ master: 0 }, '28000000100005005592006b000000000000000005000000000000000000000008000a0000000000'],
    // ip link set veth1a2b master cni0
    [{ master: 4 }, '28000000100005005592006b000000000000000005000000000000000000000008000a0004000000'],
    // ip link set veth1a2b name vethnew
    [{ name: 'vethnew' }, '2c000000100005005592006b00000000000000000500000000000000000000000c000300766574686e657700'],
  ])('%o', (change, captured) => {
    expect(wireHex(setLink(5, change))).toBe(capturedHex(captured, RTM_SETLINK));
  });

  it('says in errors what it changes', () => {
    expect(setLink(5, { up: true, mtu: 1400, mac: mac(1) }).object).toBe(
      'link 5 (up true, mtu 1400, mac 020000000001)',
    );
  });
});

describe('setBridgePort', () => {
  // Without the IFLA_INFO_KIND of 16 bytes that iproute2 puts into IFLA_LINKINFO: the kernel goes by the port's master.
  it.each([
    // ip link set dev veth1a2b type bridge_slave hairpin on isolated on
    [
      { hairpin: true, isolated: true },
      '380000001000050023e4006b0000000000000000030000000000000000000000' +
        '18001200140005000500040001000000' +
        '0500210001000000',
    ],
    // ip link set dev veth1a2b type bridge_slave learning off flood off mcast_flood off bcast_flood off neigh_suppress on
    [
      { learning: false, unicastFlood: false, multicastFlood: false, broadcastFlood: false, neighbourSuppress: true },
      '500000001000050023e4006b0000000000000000030000000000000000000000' +
        '300012002c00050005000800000000000500090000000000' +
        '05001b000000000005001e00000000000500200001000000',
    ],
    // ip link set dev va type bridge_slave state 3 locked on
    [
      { forwarding: true as const, locked: true },
      '380000001000050023e4006b0000000000000000030000000000000000000000' +
        '18001200140005000500010003000000' +
        '0500270001000000',
    ],
  ])('%o', (flags, captured) => {
    expect(wireHex(setBridgePort(3, flags))).toBe(capturedHex(captured));
  });

  it('with the link’s own changes', () => {
    // By hand: as above, ifi_flags and ifi_change IFF_UP (1), and IFLA_IFALIAS (20) of 4 + 1 bytes "a", padding.
    const expected =
      '38000000100005000000000000000000' +
      '00000000030000000100000001000000' +
      '0500140061000000' +
      '100012000c0005000500040001000000';
    expect(wireHex(setBridgePort(3, { hairpin: true }, { up: true, alias: 'a' }))).toBe(expected);
  });
});

describe('deleteLink', () => {
  it('by index', () => {
    // ip link del vethnew
    const captured = '20000000110005005692006b0000000000000000050000000000000000000000';
    expect(wireHex(deleteLink({ index: 5 }))).toBe(capturedHex(captured));
  });

  it('by name', () => {
    // By hand: nlmsghdr, ifinfomsg of zeros, IFLA_IFNAME (3) of 4 + 5 bytes "eth0\0", padding.
    const expected =
      '2c00000011000500000000000000000000000000000000000000000000000000' + '09000300657468300000' + '0000';
    expect(wireHex(deleteLink({ name: 'eth0' }))).toBe(expected);
  });
});
