import { describe, expect, it } from 'vitest';
import { formatCidr, formatIp, formatMac } from '../../core/index.ts';
import { parseHeader } from '../protocol/header.ts';
import { delegateOf, parseNetworkConfig, storeLocation } from './config.ts';

const header = (change: object) => parseHeader(JSON.stringify({ cniVersion: '1.0.0', name: 'net', ...change }));
const parse = (change: object) => parseNetworkConfig(header(change));
const IPAM = { type: 'host-local', ranges: [[{ subnet: '10.0.0.0/24' }]] };

describe('parseNetworkConfig', () => {
  it('has sensible defaults', () => {
    expect(parse({})).toEqual({
      name: 'net',
      mode: 'bridge',
      bridge: {
        name: 'cni0',
        forceAddress: false,
        hairpinMode: true,
        promiscMode: false,
        vlan: 0,
        vlanTrunk: [],
        preserveDefaultVlan: false,
        portIsolation: false,
        macspoofchk: false,
      },
      mtu: undefined,
      isGateway: true,
      isDefaultGateway: true,
      enabledad: false,
      disableContainerInterface: false,
      mac: undefined,
      ipam: { kind: 'none' },
      dns: {},
      features: { ipMasq: undefined, portMappings: undefined, bandwidth: undefined, firewall: undefined },
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
      bridge: { name: 'br1', forceAddress: true, hairpinMode: false },
      mtu: 9000,
      isGateway: true,
      isDefaultGateway: false,
      ipam: { kind: 'native' },
      dns: { nameservers: ['10.0.0.10'], domain: 'x' },
    });
    expect(config.dns).not.toHaveProperty('search');
  });

  it.each<[object, { isGateway: boolean; isDefaultGateway: boolean }]>([
    [{ isGateway: false }, { isGateway: false, isDefaultGateway: false }],
    [
      { isGateway: false, isDefaultGateway: true },
      { isGateway: true, isDefaultGateway: true },
    ],
    [{ isDefaultGateway: false }, { isGateway: true, isDefaultGateway: false }],
    [
      { isGateway: false, mode: 'routed' },
      { isGateway: true, isDefaultGateway: true },
    ],
  ])('reads %j as %j', (given, expected) => {
    expect(parse(given)).toMatchObject(expected);
  });

  it('has a gateway for a VLAN, and isolates ports for the policy', () => {
    expect(parse({ vlan: 100 })).toMatchObject({ isGateway: true, bridge: { vlan: 100, portIsolation: false } });
    expect(parse({ ingressPolicy: 'isolated' }).bridge.portIsolation).toBe(true);
    expect(parse({ ingressPolicy: 'isolated', firewall: false }).bridge.portIsolation).toBe(false);
    expect(parse({ bridge: 'cni0-abcdefghij', vlan: 100, isGateway: false }).bridge.vlan).toBe(100);
  });

  it.each<[object, number, string | RegExp]>([
    [
      { bridge: 'cni0-abcdefghij', vlan: 100 },
      7,
      'Cannot use bridge "cni0-abcdefghij": with "vlan" the gateway is "cni0-abcdefghij.100", which is no interface name',
    ],
    [
      { mode: 'routed', ingressPolicy: 'same-bridge' },
      2,
      'Key "ingressPolicy" has the unsupported value "same-bridge" in mode "routed", where no pods share a bridge, use "isolated"',
    ],
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
    [{ ipam: { type: 'a/b' } }, 7, 'Cannot use ipam.type "a/b": it must be the name of a plugin, not a path'],
    [{ mode: 'vpn' }, 7, 'Cannot use mode "vpn": it must be one of "bridge", "routed"'],
    [
      { mode: 'routed', ipMasq: true, ipam: { type: 'dhcp' } },
      2,
      'Key "ipMasq" has the unsupported value true in mode "routed" with the IPAM plugin "dhcp", use host-local',
    ],
    [{ vlan: 4095 }, 7, 'Cannot use vlan 4095: it must be a whole number from 0 to 4094'],
    [{ vlanTrunk: [{ id: 0 }] }, 7, 'Cannot use vlanTrunk[0].id 0: it must be a whole number from 1 to 4094'],
    [{ vlanTrunk: [{ minID: 5 }] }, 7, 'Cannot use vlanTrunk[0] {"minID":5}: give "id", or "minID" and "maxID"'],
    [
      { vlanTrunk: [{ minID: 5, maxID: 4 }] },
      7,
      'Cannot use vlanTrunk[0] {"minID":5,"maxID":4}: "minID" is above "maxID"',
    ],
    [
      { promiscMode: true, hairpinMode: true },
      7,
      'Cannot use hairpinMode true: it excludes "promiscMode": true, pods would get frames twice',
    ],
    [
      { disableContainerInterface: true, ipam: IPAM },
      7,
      'Cannot use disableContainerInterface true: an interface that stays down can have no "ipam"',
    ],
    [{ runtimeConfig: { ips: ['10.0.0.5'] } }, 7, 'Cannot give the addresses asked for: the network has no "ipam"'],
    [{ runtimeConfig: { mac: '01:00:5e:00:00:01' } }, 7, /^Cannot use runtimeConfig\.mac "01:.*no address of a single/],
    [{ runtimeConfig: { MAC: 'x' } }, 7, /^Cannot use runtimeConfig\.mac "x": it is no MAC address/],
    [{ capabilities: ['portMappings'] }, 7, 'Cannot use capabilities ["portMappings"]: it must be an object'],
    [{ type: 5 }, 7, 'Cannot use type 5: it must be a string'],
    [
      {
        cniVersion: '0.2.0',
        ipam: { type: 'host-local', ranges: [[{ subnet: '10.0.0.0/24' }], [{ subnet: '10.1.0.0/24' }]] },
      },
      7,
      'Cannot use ipam.ranges: version 0.2.0 of CNI has one address of a family, the sets give two; use "cniVersion": "0.3.0" or newer',
    ],
    [{ runtimeConfig: [] }, 7, 'Cannot use runtimeConfig []: it must be an object'],
    [{ dns: { search: 'x' } }, 7, 'Cannot use dns.search "x": it must be a list of strings'],
  ])('refuses %j', (change, cniCode, message) => {
    expect(() => parse(change)).toThrow(
      expect.objectContaining({
        cniCode,
        message: typeof message === 'string' ? message : expect.stringMatching(message),
      }),
    );
  });

  it('leaves the ranges to the address management', () => {
    expect(() => parse({ ipam: { type: 'host-local' } })).toThrow(expect.objectContaining({ code: 'ERR_IPAM_CONFIG' }));
  });
});

it('finds the reservations for a DEL whatever has become of the configuration', () => {
  const dataDir = (raw: object) => storeLocation(header(raw)).dataDir;
  expect(dataDir({ ipam: { dataDir: '/tmp/x' }, dataDir: '/tmp/y' })).toBe('/tmp/x');
  for (const ipam of [undefined, null, 5, {}, { dataDir: 5 }, { dataDir: 'relative' }]) {
    expect(dataDir({ ipam })).toBe('/var/lib/cni/networks');
  }
  expect(() => parse({ dataDir: 'relative' })).toThrow(/^Cannot use dataDir "relative"/);
  // Whoever reserves no address says where with a key of the network.
  for (const ipam of [undefined, {}, { type: 'dhcp' }]) expect(dataDir({ ipam, dataDir: '/tmp/y' })).toBe('/tmp/y');
  expect(dataDir({ ipam: { type: 'host-local' }, dataDir: '/tmp/y' })).toBe('/var/lib/cni/networks');
});

it('joins the VLANs of a trunk', () => {
  const vlanTrunk = [{ id: 30 }, { minID: 10, maxID: 20 }, { minID: 15, maxID: 22 }, { id: 23 }, { id: 30 }];
  expect(parse({ vlanTrunk }).bridge.vlanTrunk).toEqual([
    { first: 10, last: 23 },
    { first: 30, last: 30 },
  ]);
});

describe('what a runtime asks for', () => {
  const parsed = (change: object, cniArgs?: string) =>
    parseNetworkConfig(header({ ipam: { ...IPAM, ranges: [[{ subnet: '10.0.0.0/24' }]] }, ...change }), cniArgs);

  it('is read from three places, the later ones beating the earlier ones', () => {
    const args = { cni: { ips: ['10.0.0.6'], mac: '0a:00:00:00:00:02' } };
    const cniArgs = 'IgnoreUnknown=1;K8S_POD_NAME=x;IP=10.0.0.5,10.0.0.8;MAC=0a:00:00:00:00:01';
    const config = parsed({ args, runtimeConfig: { IPs: ['10.0.0.7/24'] } }, cniArgs);
    expect(config.ipam).toMatchObject({ kind: 'native' });
    const { ipam } = config;
    if (ipam.kind !== 'native') throw new Error('not native');
    expect(ipam.config.requested.map(formatIp)).toEqual(['10.0.0.5', '10.0.0.8', '10.0.0.6', '10.0.0.7']);
    expect(formatMac(config.mac!)).toBe('0a:00:00:00:00:02');
    expect(formatMac(parsed({ args, runtimeConfig: { mac: '0A-00-00-00-00-03' } }, cniArgs).mac!)).toBe(
      '0a:00:00:00:00:03',
    );
    expect(formatMac(parsed({}, cniArgs).mac!)).toBe('0a:00:00:00:00:01');
  });

  it('may be ranges, which come before those of the network', () => {
    const { ipam } = parsed({ runtimeConfig: { IpRanges: [[{ subnet: '10.7.0.0/24' }], [{ subnet: 'fd00::/64' }]] } });
    if (ipam.kind !== 'native') throw new Error('not native');
    expect(ipam.config.rangeSets.map(([range]) => formatCidr(range.subnet))).toEqual([
      '10.7.0.0/24',
      'fd00::/64',
      '10.0.0.0/24',
    ]);
  });

  it('may be name servers, which beat those of the network', () => {
    const dns = { nameservers: ['10.0.0.10'] };
    expect(parsed({ dns, runtimeConfig: { dns: { Servers: ['1.1.1.1'], searches: ['a'] } } }).dns).toEqual({
      nameservers: ['1.1.1.1'],
      search: ['a'],
    });
    expect(parsed({ dns, runtimeConfig: { dns: {} } }).dns).toEqual(dns);
  });
});

it('leaves addresses to another plugin when told so, for commands that read little of the configuration too', () => {
  expect(parse({ ipam: { type: 'static' } }).ipam).toEqual({ kind: 'delegate', type: 'static' });
  expect(delegateOf(header({ ipam: { type: 'static' } }))).toBe('static');
  for (const ipam of [undefined, 5, {}, { type: 'host-local' }, { type: 'nodeplane' }, { type: '../x' }, { type: 5 }]) {
    expect(delegateOf(header({ ipam }))).toBeUndefined();
  }
});
