import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sampleNode, samplePort } from '../../../../test/samples/sample-plan.ts';
import {
  atOnce,
  type Cidr,
  cidrContains,
  formatCidr,
  ipFromBytes,
  networkOf,
  parseCidr,
  parseIp,
} from '../../../core/index.ts';
import { compilePort } from './compile.ts';
import { allowedSources } from './source-ranges.ts';

const plain = samplePort({
  name: 'a/b',
  clusterIp: '10.96.0.1',
  loadBalancerVips: ['192.0.2.1'],
  remote: ['10.0.0.1:1'],
});
const allowed = (sourceRanges: readonly Cidr[], nodeIp?: string) =>
  allowedSources(
    { ...plain, sourceRanges },
    sampleNode({ nodeIp: nodeIp === undefined ? undefined : parseIp(nodeIp) }),
  );

it('keeps of ranges within each other the widest, each once', () => {
  const ranges = [
    '10.1.2.0/24',
    '10.0.0.0/8',
    '10.1.0.0/16',
    '192.0.2.0/24',
    '10.0.0.0/8',
    '9.255.255.255/32',
    '11.0.0.0/32',
  ];
  expect(allowed(ranges.map(parseCidr)).map(formatCidr)).toEqual([
    ...['9.255.255.255/32', '10.0.0.0/8', '11.0.0.0/32', '192.0.2.0/24'],
  ]);
});

it('lets the VIP itself in on a node that is let in', () => {
  expect(allowed([parseCidr('10.0.0.0/8')], '10.9.9.9').map(formatCidr)).toEqual(['10.0.0.0/8', '192.0.2.1/32']);
  expect(allowed([parseCidr('10.0.0.0/8')], '11.9.9.9').map(formatCidr)).toEqual(['10.0.0.0/8']);
});

it('lets in who is in one of the ranges, and nobody else', () => {
  // Of few bits, so that many are within each other.
  const bytes = fc.tuple(fc.constantFrom(0, 10, 255), fc.constantFrom(0, 128, 255), fc.nat(3), fc.constantFrom(0, 255));
  const address = bytes.map((each) => ipFromBytes(Uint8Array.from(each)));
  const range = fc
    .record({ address, prefixLength: fc.integer({ min: 1, max: 32 }) })
    .map(({ address: ip, prefixLength }): Cidr => ({ address: networkOf(ip, prefixLength), prefixLength }));
  fc.assert(
    fc.property(fc.array(range), fc.array(address), (ranges, addresses) => {
      const kept = allowed(ranges);
      const within = (list: readonly Cidr[], ip: Cidr['address']) =>
        list.filter((each) => cidrContains(each, ip)).length;
      for (const ip of [...addresses, ...ranges.map((each) => each.address)]) {
        expect(within(kept, ip)).toBe(within(ranges, ip) > 0 ? 1 : 0);
      }
    }),
  );
});

// What costs the square of these numbers takes minutes.
it('takes 40,000 ranges and 20,000 external IPs', { timeout: 30_000 }, () => {
  const address = (n: number) => ipFromBytes(Uint8Array.of(100, n >> 16, n >> 8, n));
  const ranges = Array.from({ length: 40_000 }, (_, n) => ({ address: address(n * 2), prefixLength: 32 }));
  expect(allowed(ranges)).toHaveLength(40_000);
  expect(allowed(ranges.map((each, n) => ({ ...each, prefixLength: 16 + (n % 17) }))).length).toBeLessThan(40_000);
  const externalIps = Array.from({ length: 20_000 }, (_, n) => address(n));
  expect(atOnce(compilePort({ ...plain, externalIps }, sampleNode())).claims).toHaveLength(20_002);
});
