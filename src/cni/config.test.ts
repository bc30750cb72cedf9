import { describe, expect, it } from 'vitest';
import { parseHeader, parseNetworkConfig, reservationsFor } from './config.ts';

const header = (change: object) => parseHeader(JSON.stringify({ cniVersion: '1.0.0', name: 'net', ...change }));
const parse = (change: object) => parseNetworkConfig(header(change));
const IPAM = { type: 'host-local', ranges: [[{ subnet: '10.0.0.0/24' }]] };

describe('parseNetworkConfig', () => {
  it('has sensible defaults', () => {
    expect(parse({})).toEqual({
      cniVersion: '1.0.0',
      name: 'net',
      bridge: 'cni0',
      mtu: undefined,
      isGateway: true,
      isDefaultGateway: true,
      forceAddress: false,
      hairpinMode: true,
      ipam: undefined,
      dns: {},
    });
  });

  it('takes what is given, and ignores what it does not know', () => {
    const config = parse({
      bridge: 'br1',
      mtu: 9000,
      isGateway: true,
      isDefaultGateway: false,
      forceAddress: true,
      hairpinMode: false,
      ipam: { ...IPAM, type: 'nodeplane' },
      dns: { nameservers: ['10.0.0.10'], domain: 'x', search: [], extra: 1 },
      prevResult: 'nonsense',
      ipMasq: false,
      vlan: 0,
      vlanTrunk: [],
      runtimeConfig: { portMappings: [], 'io.kubernetes.cri.pod-annotations': { a: 'b' } },
      colour: 'blue',
    });
    expect(config).toMatchObject({
      bridge: 'br1',
      mtu: 9000,
      isGateway: true,
      isDefaultGateway: false,
      forceAddress: true,
      hairpinMode: false,
      dns: { nameservers: ['10.0.0.10'], domain: 'x' },
    });
    expect(config.dns).not.toHaveProperty('search');
    expect(config.ipam?.rangeSets).toHaveLength(1);
  });

  it.each<[object, { isGateway: boolean; isDefaultGateway: boolean }]>([
    [{ isGateway: false }, { isGateway: false, isDefaultGateway: false }],
    [
      { isGateway: false, isDefaultGateway: true },
      { isGateway: true, isDefaultGateway: true },
    ],
    [{ isDefaultGateway: false }, { isGateway: true, isDefaultGateway: false }],
  ])('reads %j as %j', (given, expected) => {
    expect(parse(given)).toMatchObject(expected);
  });

  it.each<[object, number, string]>([
    [{ bridge: 'a/b' }, 7, 'Cannot use bridge "a/b": "/", ":" and spaces are not allowed'],
    [{ bridge: 5 }, 7, 'Cannot use bridge 5: it must be a string'],
    [{ mtu: 20 }, 7, 'Cannot use mtu 20: it must be a whole number from 68 to 65535, or 0'],
    [{ mtu: 1500.5 }, 7, 'Cannot use mtu 1500.5: it must be a whole number from 68 to 65535, or 0'],
    [{ mtu: '1500' }, 7, 'Cannot use mtu "1500": it must be a number'],
    [
      { mtu: 1279, ipam: { type: 'host-local', subnet: 'fd00::/64' } },
      7,
      'Cannot use mtu 1279: it must be a whole number from 1280, because the network has IPv6 addresses to 65535, or 0',
    ],
    [{ hairpinMode: 'yes' }, 7, 'Cannot use hairpinMode "yes": it must be a boolean'],
    [{ ipam: [] }, 7, 'Cannot use ipam []: it must be an object'],
    [{ ipam: { ranges: [] } }, 7, 'Cannot use ipam: key "type" is missing, give "host-local" or "nodeplane"'],
    [
      { ipam: { type: 'static' } },
      2,
      'Key "ipam.type" has the unsupported value "static", supported are "host-local" and "nodeplane"',
    ],
    [{ vlan: 5 }, 2, 'Key "vlan" has the unsupported value 5, remove it'],
    [{ ipMasq: true }, 2, 'Key "ipMasq" has the unsupported value true, remove it'],
    [
      { runtimeConfig: { PortMappings: [{ HostPort: 80 }] } },
      2,
      'Key "runtimeConfig.PortMappings" has the unsupported value [{"HostPort":80}], do not declare the capability "PortMappings"',
    ],
    [{ dns: { search: 'x' } }, 7, 'Cannot use dns.search "x": it must be a list of strings'],
  ])('refuses %j', (change, cniCode, message) => {
    expect(() => parse(change)).toThrow(expect.objectContaining({ cniCode, message }));
  });

  it('leaves the ranges to the address management', () => {
    expect(() => parse({ ipam: { type: 'host-local' } })).toThrow(expect.objectContaining({ code: 'ERR_IPAM_CONFIG' }));
  });
});

it('finds the reservations for a DEL whatever has become of the configuration', () => {
  expect(reservationsFor(header({ ipam: { dataDir: '/tmp/x' } }))).toBe('/tmp/x');
  for (const ipam of [undefined, null, 5, {}, { dataDir: 5 }, { dataDir: 'relative' }]) {
    expect(reservationsFor(header({ ipam }))).toBe('/var/lib/cni/networks');
  }
});
