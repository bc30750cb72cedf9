import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { walkPacket } from '../../../test/lab/iptables/packet-walk.ts';
import { formatIp, type IpFamily, ipFromBytes, parseIp } from '../../core/index.ts';
import { addressPortKey, addressSpace, portKey, portSpace } from './key-spaces.ts';

const key = addressPortKey(parseIp('10.96.17.5'), 'udp', 0x1f90);

describe('addressSpace', () => {
  it.each([
    [5, '-d 10.64.0.0/10', 'KUBE-SVC-10.64.0.0/10'],
    [10, '-d 10.96.16.0/20', 'KUBE-SVC-10.96.16.0/20'],
    [16, '-d 10.96.17.5/32', 'KUBE-SVC-10.96.17.5/32'],
  ])('writes the first %i digits as %s', (length, match, name) => {
    const space = addressSpace('IPv4', 'KUBE-SVC-');
    expect(space.match(key.digits, length)).toBe(match);
    expect(space.chainName(key.digits, length)).toBe(name);
  });

  it.each([
    [17, '-d 10.96.17.5/32 -p udp'],
    [19, '-d 10.96.17.5/32 -p udp -m udp --dport 4096:8191'],
    [24, '-d 10.96.17.5/32 -p udp -m udp --dport 8080:8083'],
  ])('goes on below an address with protocol and ports: %i digits', (length, match) => {
    const space = addressSpace('IPv4', 'KUBE-SVC-');
    expect(space.match(key.digits, length)).toBe(match);
    expect(space.chainName(key.digits, length)).toMatch(/^KUBE-SVC-[a-z2-7]{16}$/);
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
      fc.property(packet, packet, fc.integer({ min: 1, max: size * 4 + 8 }), (a, b, length) => {
        const [ours, theirs] = [a, b].map(({ ip, protocol, port }) => addressPortKey(ip, protocol, port).digits);
        const rule = `${space.match(ours!, length)} -j ACCEPT`;
        const { verdict } = walkPacket(new Map([['X', [rule]]]), 'X', {
          ...{ source: formatIp(b.ip), destination: formatIp(b.ip), protocol: b.protocol, port: b.port },
        });
        const same = ours!.subarray(0, length).every((digit, i) => digit === theirs![i]);
        expect(verdict).toBe(same ? 'ACCEPT' : undefined);
        expect(space.chainName(ours!, length).length).toBeLessThanOrEqual(28);
        expect(space.chainName(ours!, length) === space.chainName(theirs!, length)).toBe(same);
      }),
    );
  });
});

describe('portSpace', () => {
  it.each([
    [1, '-p tcp', 'KUBE-EXT-tcp-0-65535'],
    [6, '-p tcp -m tcp --dport 30080:30143', 'KUBE-EXT-tcp-30080-30143'],
    [8, '-p tcp -m tcp --dport 30080:30083', 'KUBE-EXT-tcp-30080-30083'],
  ])('writes the first %i digits of tcp 30080 as %s', (length, match, name) => {
    const { digits } = portKey('tcp', 30080);
    expect(portSpace('KUBE-EXT-').match(digits, length)).toBe(match);
    expect(portSpace('KUBE-EXT-').chainName(digits, length)).toBe(name);
  });
});
