import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { walkPacket } from '../../../test/fakes/packet-walk.ts';
import { formatIp, type IpFamily, ipFromBytes, parseIp } from '../../core/index.ts';
import { addressPortKey, addressSpace, portKey, portSpace } from './key-spaces.ts';

const key = addressPortKey(parseIp('10.96.17.5'), 'udp', 0x1f90);
const prefixOf = (bits: Uint8Array, length: number) =>
  Array.from(bits, (byte) => byte.toString(2).padStart(8, '0'))
    .join('')
    .slice(0, length);

describe('addressSpace', () => {
  it.each([
    [11, '-d 10.96.0.0/11', 'KUBE-SVC-10.96.0.0/11'],
    [20, '-d 10.96.16.0/20', 'KUBE-SVC-10.96.16.0/20'],
    [32, '-d 10.96.17.5/32', 'KUBE-SVC-10.96.17.5/32'],
  ])('writes the first %i bits as %s', (length, match, name) => {
    const space = addressSpace('IPv4', 'KUBE-SVC-');
    expect(space.match(key.bits, length)).toBe(match);
    expect(space.chainName(key.bits, length)).toBe(name);
  });

  it.each([
    [33, '-d 10.96.17.5/32 ! -p tcp'],
    [34, '-d 10.96.17.5/32 -p udp'],
    [40, '-d 10.96.17.5/32 -p udp'],
    [43, '-d 10.96.17.5/32 -p udp -m udp --dport 0:8191'],
    [55, '-d 10.96.17.5/32 -p udp -m udp --dport 8080:8081'],
  ])('goes on below an address with protocol and ports: %i bits', (length, match) => {
    const space = addressSpace('IPv4', 'KUBE-SVC-');
    expect(space.match(key.bits, length)).toBe(match);
    expect(space.chainName(key.bits, length)).toMatch(/^KUBE-SVC-[a-z2-7]{16}$/);
  });

  it.each(['IPv4', 'IPv6'] as IpFamily[])('matches exactly the packets with the prefix: %s', (family) => {
    const size = family === 'IPv4' ? 4 : 16;
    const packet = fc.record({
      ip: fc.uint8Array({ minLength: size, maxLength: size, max: 3 }).map(ipFromBytes),
      protocol: fc.constantFrom('tcp' as const, 'udp' as const, 'sctp' as const),
      port: fc.integer({ min: 1, max: 65535 }),
    });
    const space = addressSpace(family, 'KUBE-SVC-');
    fc.assert(
      fc.property(packet, packet, fc.integer({ min: 1, max: size * 8 + 23 }), (a, b, length) => {
        const [ours, theirs] = [a, b].map(({ ip, protocol, port }) => addressPortKey(ip, protocol, port).bits);
        const rule = `${space.match(ours!, length)} -j ACCEPT`;
        const { verdict } = walkPacket(new Map([['X', [rule]]]), 'X', {
          source: formatIp(b.ip),
          destination: formatIp(b.ip),
          protocol: b.protocol,
          port: b.port,
        });
        const same = prefixOf(ours!, length) === prefixOf(theirs!, length);
        expect(verdict).toBe(same ? 'ACCEPT' : undefined);
        expect(space.chainName(ours!, length).length).toBeLessThanOrEqual(28);
        expect(space.chainName(ours!, length) === space.chainName(theirs!, length)).toBe(same);
      }),
    );
  });
});

describe('portSpace', () => {
  it.each([
    ['sctp', 1, '! -p tcp', 'KUBE-EXT-not-tcp-0-65535'],
    ['tcp', 8, '-p tcp', 'KUBE-EXT-tcp-0-65535'],
    ['tcp', 18, '-p tcp -m tcp --dport 30080:30143', 'KUBE-EXT-tcp-30080-30143'],
    ['sctp', 22, '-p sctp -m sctp --dport 30080:30083', 'KUBE-EXT-sctp-30080-30083'],
  ] as const)('writes %s 30080, the first %i bits, as %s', (protocol, length, match, name) => {
    const { bits } = portKey(protocol, 30080);
    expect(portSpace('KUBE-EXT-').match(bits, length)).toBe(match);
    expect(portSpace('KUBE-EXT-').chainName(bits, length)).toBe(name);
  });
});
