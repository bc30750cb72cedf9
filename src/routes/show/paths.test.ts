import { describe, expect, it } from 'vitest';
import { formatIp, parseCidr, parseIp } from '../../core/index.ts';
import type { Link } from '../../netlink/route/index.ts';
import type { WireguardPeer } from '../../netlink/wireguard/index.ts';
import { wireguardPath } from './paths.ts';

const NOW = 1_800_000_000;
const LINK = { index: 7, name: 'nodeplane-wg', up: true } as Link;
const PEER: WireguardPeer = {
  publicKey: new Uint8Array(32).fill(7),
  endpoint: { ip: parseIp('192.0.2.2'), port: 51820 },
  keepaliveSeconds: 0,
  lastHandshake: NOW - 12,
  receivedBytes: 0n,
  sentBytes: 0n,
  allowedIps: ['10.244.2.0/24', '192.0.2.2/32', 'fd00:2::/64', 'fd00::2/128'].map(parseCidr),
};

describe('the way through the WireGuard device', () => {
  it('leads to the node’s own address of the family', () => {
    const addressOf = (family: 'IPv4' | 'IPv6') => formatIp(wireguardPath(LINK, PEER, family, NOW).address!);
    expect([addressOf('IPv4'), addressOf('IPv6')]).toEqual(['192.0.2.2', 'fd00::2']);
  });

  it.each([
    ['yes', 'last handshake 12 s ago', {}, {}],
    ['yes', 'last handshake 0 s ago', {}, { lastHandshake: NOW + 5 }],
    ['unknown', 'last handshake 180 s ago', {}, { lastHandshake: NOW - 180 }],
    ['unknown', 'no handshake yet', {}, { lastHandshake: undefined }],
    ['no', 'nodeplane-wg does not know where the peer is', {}, { endpoint: undefined }],
    ['no', 'nodeplane-wg is down', { up: false }, {}],
  ])('reaches the node: %s (%s)', (verdict, because, link, peer) => {
    const path = wireguardPath({ ...LINK, ...link }, { ...PEER, ...peer }, 'IPv4', NOW);
    expect(path).toMatchObject({ mode: 'wireguard', reach: { verdict, because } });
  });

  it('of addresses that no peer has leads nowhere', () => {
    const { address, reach } = wireguardPath(LINK, undefined, 'IPv4', NOW);
    expect(address).toBeUndefined();
    expect(reach).toEqual({ verdict: 'no', because: 'no peer of nodeplane-wg has these addresses' });
  });
});
