import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ipFromBytes, networkOf } from '../../core/index.ts';
import { CniError } from './errors.ts';
import { parseResult } from './parse-result.ts';
import { type CniResult, resultObject } from './result.ts';
import { SUPPORTED_VERSIONS } from './versions.ts';

const ip = (size: 4 | 16) =>
  fc
    .uint8Array({ minLength: size, maxLength: size })
    // An IPv4 address written as IPv6 is read as IPv4.
    .filter((bytes) => size === 4 || bytes[0] !== 0)
    .map(ipFromBytes);
const cidr = fc.oneof(
  fc.record({ address: ip(4), prefixLength: fc.nat(32) }),
  fc.record({ address: ip(16), prefixLength: fc.nat(128) }),
);
const gateway = fc.option(fc.oneof(ip(4), ip(16)), { nil: undefined });
const result: fc.Arbitrary<CniResult> = fc.record({
  interfaces: fc.array(
    fc.record(
      {
        name: fc.constantFrom('eth0', 'cni0'),
        mac: fc.uint8Array({ minLength: 6, maxLength: 6 }),
        sandbox: fc.constant('/x'),
      },
      { requiredKeys: ['name', 'mac'] },
    ),
  ),
  ips: fc.array(fc.record({ address: cidr, gateway, interface: fc.option(fc.nat(5), { nil: undefined }) })),
  routes: fc.array(
    fc.record({
      destination: cidr.map(({ address, prefixLength }) => ({
        address: networkOf(address, prefixLength),
        prefixLength,
      })),
      gateway,
    }),
  ),
  dns: fc.record(
    { nameservers: fc.array(fc.string(), { minLength: 1 }), domain: fc.constant('a') },
    { requiredKeys: [] },
  ),
});
const printed = (value: CniResult, version: (typeof SUPPORTED_VERSIONS)[number]) =>
  JSON.parse(JSON.stringify(resultObject(value, version)));

describe('parseResult', () => {
  it('reads what was printed in any version, and prints it again as it was', () => {
    fc.assert(
      fc.property(result, fc.constantFrom(...SUPPORTED_VERSIONS), (value, version) => {
        const text = printed(value, version);
        expect(printed(parseResult(text, '0.1.0', 'prevResult'), version)).toEqual(text);
      }),
    );
  });

  it('converts to every other version without losing what both can say', () => {
    fc.assert(
      fc.property(result, fc.constantFrom(...SUPPORTED_VERSIONS), (value, version) => {
        const viaNewest = parseResult(printed(value, '1.1.0'), '1.1.0', 'prevResult');
        expect(printed(viaNewest, version)).toEqual(printed(value, version));
      }),
    );
  });

  it('takes a result without version for one of the configuration’s', () => {
    const old = { ip4: { ip: '10.0.0.2/24', gateway: '10.0.0.1', routes: [{ dst: '0.0.0.0/0' }] } };
    expect(parseResult(old, '0.2.0', 'prevResult')).toMatchObject({ ips: [{}], routes: [{}] });
    expect(parseResult(old, '1.0.0', 'prevResult')).toMatchObject({ ips: [], routes: [] });
  });

  it('refuses whatever is no result with an error of the configuration, and never crashes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        try {
          parseResult(value, '1.1.0', 'prevResult');
        } catch (error) {
          expect(error).toBeInstanceOf(CniError);
          expect((error as CniError).cniCode).toBe(7);
        }
      }),
    );
  });

  it.each<[object, string]>([
    [{ cniVersion: '2.0.0' }, 'Cannot use prevResult.cniVersion "2.0.0": this version is not supported'],
    [{ ips: {} }, 'Cannot use prevResult.ips {}: it must be a list'],
    [{ ips: [5] }, 'Cannot use prevResult.ips[0] 5: it must be an object'],
    [
      { ips: [{ address: '10.0.0.2' }] },
      'Cannot use prevResult.ips[0].address "10.0.0.2": it is no address with a prefix length, such as "10.244.1.2/24"',
    ],
    [
      { ips: [{ address: '10.0.0.2/8', gateway: 'x' }] },
      'Cannot use prevResult.ips[0].gateway "x": it is no IP address',
    ],
    [
      { ips: [{ address: '10.0.0.2/8', interface: -1 }] },
      'Cannot use prevResult.ips[0].interface -1: it must be a whole number from 0 to 4294967295',
    ],
    [{ interfaces: [{ name: 5 }] }, 'Cannot use prevResult.interfaces[0].name 5: it must be a string'],
    [{ dns: { search: 'x' } }, 'Cannot use prevResult.dns.search "x": it must be a list of strings'],
  ])('says what is wrong with %j', (value, message) => {
    expect(() => parseResult(value, '1.1.0', 'prevResult')).toThrow(message);
  });
});
