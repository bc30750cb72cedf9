import { describe, expect, it } from 'vitest';
import { parseAddressWithPrefix, parseCidr, parseIp } from '../../core/index.ts';
import { type CniResult, resultObject } from './result.ts';

const MAC = Uint8Array.of(0x0a, 0x58, 10, 0, 0, 2);
const ATTACHMENT: CniResult = {
  interfaces: [
    { name: 'cni0', mac: MAC, mtu: 1500 },
    { name: 'veth1', mac: MAC, mtu: 1400 },
    { name: 'eth0', mac: MAC, mtu: 1400, sandbox: '/run/netns/x' },
  ],
  ips: [
    { address: parseAddressWithPrefix('10.0.0.2/24'), gateway: parseIp('10.0.0.1'), interface: 2 },
    { address: parseAddressWithPrefix('fd00::2/64'), gateway: parseIp('fd00::1'), interface: 2 },
  ],
  routes: [
    { destination: parseCidr('0.0.0.0/0'), gateway: parseIp('10.0.0.1') },
    { destination: parseCidr('::/0'), gateway: parseIp('fd00::1') },
  ],
  dns: {},
};
const mac = '0a:58:0a:00:00:02';
const interfaces = [
  { name: 'cni0', mac },
  { name: 'veth1', mac },
  { name: 'eth0', mac, sandbox: '/run/netns/x' },
];
const routes = [
  { dst: '0.0.0.0/0', gw: '10.0.0.1' },
  { dst: '::/0', gw: 'fd00::1' },
];
const ips = [
  { interface: 2, address: '10.0.0.2/24', gateway: '10.0.0.1' },
  { interface: 2, address: 'fd00::2/64', gateway: 'fd00::1' },
];

/** As it is printed: without what is undefined. */
const plain = (value: object): object => JSON.parse(JSON.stringify(value));

describe('resultObject', () => {
  it.each(['0.3.0', '0.3.1', '0.4.0'] as const)('names the IP version in %s and always has dns', (cniVersion) => {
    expect(resultObject(ATTACHMENT, cniVersion)).toStrictEqual({
      cniVersion,
      interfaces,
      ips: [
        { version: '4', ...ips[0] },
        { version: '6', ...ips[1] },
      ],
      routes,
      dns: {},
    });
  });

  it('is leaner in 1.0.0', () => {
    expect(resultObject(ATTACHMENT, '1.0.0')).toStrictEqual({ cniVersion: '1.0.0', interfaces, ips, routes });
  });

  it('tells MTUs in 1.1.0', () => {
    expect(plain(resultObject(ATTACHMENT, '1.1.0'))).toStrictEqual({
      cniVersion: '1.1.0',
      interfaces: interfaces.map((link, i) => ({ ...link, mtu: [1500, 1400, 1400][i] })),
      ips,
      routes,
    });
  });

  it('has dns in every version when there is something to say', () => {
    const dns = { nameservers: ['10.96.0.10'] };
    expect(resultObject({ ...ATTACHMENT, dns }, '1.1.0')).toMatchObject({ dns });
  });

  it.each(['0.1.0', '0.2.0'] as const)('has one address a family and no interfaces in %s', (cniVersion) => {
    const second = { address: parseAddressWithPrefix('10.9.0.2/24'), gateway: undefined, interface: 2 };
    expect(resultObject({ ...ATTACHMENT, ips: [...ATTACHMENT.ips, second] }, cniVersion)).toStrictEqual({
      cniVersion,
      ip4: { ip: '10.0.0.2/24', gateway: '10.0.0.1', routes: [routes[0]] },
      ip6: { ip: 'fd00::2/64', gateway: 'fd00::1', routes: [routes[1]] },
      dns: {},
    });
  });

  it('says what else is known of routes and interfaces in 1.1.0 alone', () => {
    const result: CniResult = {
      ...ATTACHMENT,
      interfaces: [{ name: 'vf', socketPath: '/run/x', pciID: '0000:04:00.5' }],
      routes: [{ destination: parseCidr('10.1.0.0/16'), mtu: 1400, priority: 5, table: 7, scope: 253, advmss: 1360 }],
    };
    expect(plain(resultObject(result, '1.1.0'))).toMatchObject({
      interfaces: [{ name: 'vf', socketPath: '/run/x', pciID: '0000:04:00.5' }],
      routes: [{ dst: '10.1.0.0/16', mtu: 1400, priority: 5, table: 7, scope: 253, advmss: 1360 }],
    });
    expect(resultObject(result, '1.0.0')).toMatchObject({
      interfaces: [{ name: 'vf' }],
      routes: [{ dst: '10.1.0.0/16' }],
    });
    expect(JSON.stringify(resultObject(result, '1.0.0'))).not.toMatch(/mtu|pciID|socketPath|scope/);
  });
});
