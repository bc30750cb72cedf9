import { describe, expect, it } from 'vitest';
import { expectSafeDecoder } from '../../../test/fakes/decoder-properties.ts';
import { answer, done, FakeNetlink, frame } from '../../../test/fakes/fake-netlink.ts';
import { capturedHex, wireHex } from '../../../test/fakes/netlink-golden.ts';
import { type Cidr, formatCidr, ipFromBytes, parseCidr, parseIp } from '../../core/index.ts';
import { Netlink } from '../netlink.ts';
import { NLM_F_MULTI } from '../uapi/netlink.ts';
import { newWireguardLink } from './device-link.ts';
import { decodeWireguard, getWireguard, wireguardQuery } from './get-device.ts';
import { type PeerChange, setWireguard } from './set-device.ts';

// By hand, from the layout in <linux/wireguard.h>, but for the link; test/vm/wireguard.test.ts asks the kernel.

const FAMILY = 33;
const key = (byte: number) => new Uint8Array(32).fill(byte);
const hexOf = (byte: number) => byte.toString(16).padStart(2, '0').repeat(32);
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

it('newWireguardLink', () => {
  // ip link add wg0 mtu 1420 type wireguard
  const captured =
    '4400000010000506e9b7026b000000000000000000000000000000000000000008000400' +
    '8c0500000800030077673000140012000d000100776972656775617264000000';
  expect(wireHex(newWireguardLink({ name: 'wg0', mtu: 1420 }))).toBe(capturedHex(captured));
});

describe('setWireguard', () => {
  it('writes key, port, mark and flags', () => {
    const change = { privateKey: key(1), port: 51820, fwmark: 7, replacePeers: true };
    const [request, ...rest] = setWireguard(FAMILY, 5, change);
    expect(rest).toEqual([]);
    expect([request?.type, request?.operation, request?.object]).toEqual([
      FAMILY,
      'WG_CMD_SET_DEVICE',
      'WireGuard device 5',
    ]);
    expect(hex(request!.payload)).toBe(
      '01010000' +
        '0800010005000000' +
        `24000300${hexOf(1)}` +
        '060006006cca0000' +
        '0800070007000000' +
        '0800050001000000',
    );
  });

  it('writes peers with all they have, over both families', () => {
    const peers: PeerChange[] = [
      {
        publicKey: key(2),
        presharedKey: key(3),
        endpoint: { ip: parseIp('192.0.2.2'), port: 51820 },
        keepaliveSeconds: 25,
        allowedIps: [parseCidr('10.244.2.0/24'), parseCidr('fd02::/64')],
        replaceAllowedIps: true,
        updateOnly: true,
      },
      { publicKey: key(4), endpoint: { ip: parseIp('fd00::4'), port: 1 } },
    ];
    const [request] = setWireguard(FAMILY, 5, { peers });
    const first =
      `24000100${hexOf(2)}` +
      '0800030006000000' +
      `24000200${hexOf(3)}` +
      '140004000200ca6cc00002020000000000000000' +
      '0600050019000000' +
      '48000980' +
      '1c000080' +
      '0600010002000000' +
      '080002000af40200' +
      '0500030018000000' +
      '28000080' +
      '060001000a000000' +
      '14000200fd020000000000000000000000000000' +
      '0500030040000000';
    const second = `24000100${hexOf(4)}200004000a00000100000000fd00000000000000000000000000000400000000`;
    expect(hex(request!.payload)).toBe(`01010000080001000500000004010880b8000080${first}48000080${second}`);
  });

  it('removes peers by their key alone', () => {
    const peers = [{ publicKey: key(2), remove: true, keepaliveSeconds: 3, allowedIps: [parseCidr('10.0.0.0/8')] }];
    expect(hex(setWireguard(FAMILY, 5, { peers })[0]!.payload)).toBe(
      `010100000800010005000000340008803000008024000100${hexOf(2)}0800030001000000`,
    );
  });

  it.each([
    [{ privateKey: key(1).subarray(1) }, 'private key'],
    [{ peers: [{ publicKey: new Uint8Array() }] }, 'public key'],
    [{ peers: [{ publicKey: key(1), presharedKey: new Uint8Array(33) }] }, 'preshared key'],
    [{ peers: [{ publicKey: key(1), keepaliveSeconds: 65_536 }] }, 'WGPEER_A_PERSISTENT_KEEPALIVE_INTERVAL'],
  ])('refuses %o', (change, what) => {
    expect(() => setWireguard(FAMILY, 5, change)).toThrow(
      expect.objectContaining({ code: 'ERR_ENCODE', message: expect.stringContaining(what) }),
    );
  });
});

describe('what does not fit one message', () => {
  const ips = (count: number): Cidr[] =>
    Array.from({ length: count }, (_, i) => ({
      address: ipFromBytes(Uint8Array.of(10, i >> 16, (i >> 8) & 0xff, i & 0xff)),
      prefixLength: 32,
    }));

  it('goes on in the next, which replaces and makes nothing', () => {
    const change = {
      privateKey: key(1),
      replacePeers: true,
      peers: [
        { publicKey: key(2), keepaliveSeconds: 9, allowedIps: ips(5000), replaceAllowedIps: true },
        { publicKey: key(3), allowedIps: ips(2) },
      ],
    };
    const requests = setWireguard(FAMILY, 5, change);
    expect(requests).toHaveLength(3);
    const [first, ...later] = requests.map(({ payload }) => hex(payload));
    expect(first).toContain(hexOf(1));
    // WGDEVICE_A_FLAGS, WGPEER_A_FLAGS with WGPEER_F_REPLACE_ALLOWEDIPS, the keepalive interval.
    const once = ['0800050001000000', '0800030002000000', '0600050009000000'];
    for (const attribute of once) expect(first).toContain(attribute);
    for (const message of later) {
      expect(message).not.toContain(hexOf(1));
      for (const attribute of once) expect(message).not.toContain(attribute);
    }
    // WGPEER_A_FLAGS with WGPEER_F_UPDATE_ONLY behind the key.
    expect(later.every((message) => message.includes(`${hexOf(2)}0800030004000000`))).toBe(true);
    // The kernel lists in the same form.
    const { peers } = decodeWireguard(requests.map(({ payload }) => payload));
    expect(peers.map(({ allowedIps }) => allowedIps.map(formatCidr))).toEqual(
      [ips(5000), ips(2)].map((each) => each.map(formatCidr)),
    );
    expect(peers[0]).toMatchObject({ keepaliveSeconds: 9 });
  });

  it('of 5,000 peers takes a few messages, each within what an attribute can hold', () => {
    const addresses = ips(5000);
    const peers = Array.from({ length: 5000 }, (_, i) => ({
      publicKey: Uint8Array.from(
        key(0)
          .fill(i & 0xff, 0, 1)
          .fill(i >> 8, 1, 2),
      ),
      endpoint: { ip: parseIp('192.0.2.2'), port: 51820 },
      allowedIps: [addresses[i]!, parseCidr('fd00::/64')],
    }));
    const requests = setWireguard(FAMILY, 5, { peers });
    expect(requests.length).toBeLessThan(25);
    expect(Math.max(...requests.map(({ payload }) => payload.length))).toBeLessThan(0xffff);
    expect(decodeWireguard(requests.map(({ payload }) => payload)).peers).toHaveLength(5000);
  });
});

describe('getWireguard', () => {
  const LAST_HANDSHAKE = '14000600' + '0010000000000000' + '0500000000000000';
  const PEER =
    `24000100${hexOf(2)}` +
    '140004000200ca6cc00002020000000000000000' +
    LAST_HANDSHAKE +
    '0c0007000500000000000000' +
    '0c0008000000000000010000' +
    '0600050019000000' +
    '08000a0001000000' +
    '20000980' +
    '1c000080' +
    '0600010002000000' +
    '080002000af40200' +
    '0500030018000000';
  const size = (hexText: string) => {
    const length = hexText.length / 2 + 4;
    return `${(length & 0xff).toString(16).padStart(2, '0')}${(length >> 8).toString(16).padStart(2, '0')}`;
  };
  const peerList = (...peers: string[]) => {
    const list = peers.map((peer) => `${size(peer)}0080${peer}`).join('');
    return `${size(list)}0880${list}`;
  };
  const MORE = `24000100${hexOf(2)}200009801c0000800600010002000000080002000af403000500030018000000`;
  const HEAD =
    '00010000' +
    '060006006cca0000' +
    '0800070000000000' +
    '0800010005000000' +
    '0800020077673000' +
    `24000300${hexOf(1)}` +
    `24000400${hexOf(9)}`;
  const FIRST = Buffer.from(HEAD + peerList(PEER), 'hex');
  const SECOND = Buffer.from(`00010000${peerList(MORE, `24000100${hexOf(4)}`)}`, 'hex');

  it('asks by index', () => {
    expect(hex(wireguardQuery(FAMILY, 5).payload)).toBe('00010000' + '0800010005000000');
  });

  it('joins a peer that is told in two parts', () => {
    const fake = new FakeNetlink(([request]) => [
      frame(answer(request!, FAMILY, FIRST, NLM_F_MULTI)),
      frame(answer(request!, FAMILY, SECOND, NLM_F_MULTI), done(request!)),
    ]);
    const device = getWireguard(new Netlink(fake), FAMILY, 5);
    expect(device).toMatchObject({ index: 5, name: 'wg0', port: 51820, fwmark: 0 });
    expect([hex(device.privateKey!), hex(device.publicKey!)]).toEqual([hexOf(1), hexOf(9)]);
    const [peer, silent] = device.peers;
    expect(peer).toMatchObject({
      endpoint: { ip: parseIp('192.0.2.2'), port: 51820 },
      keepaliveSeconds: 25,
      lastHandshake: 4096,
      receivedBytes: 5n,
      sentBytes: 2n ** 40n,
      allowedIps: [parseCidr('10.244.2.0/24'), parseCidr('10.244.3.0/24')],
    });
    expect(silent).toMatchObject({
      endpoint: undefined,
      keepaliveSeconds: 0,
      lastHandshake: undefined,
      allowedIps: [],
    });
    expect(hex(silent!.publicKey)).toBe(hexOf(4));
  });

  it('gives a value or ERR_NETLINK_DECODE for any bytes', () => {
    expectSafeDecoder((payload) => decodeWireguard([payload]), [FIRST]);
    expectSafeDecoder((payload) => decodeWireguard([FIRST, payload]), [SECOND]);
    expect(() => decodeWireguard([])).toThrow(
      'Cannot decode WG_CMD_GET_DEVICE: its first part has no WGDEVICE_A_IFINDEX',
    );
  });
});
