import { describe, expect, it } from 'vitest';
import { formatCidr, formatIp, parseAddressWithPrefix, parseIp } from '../core/index.ts';
import { configuredGateways } from './bridge/bridge-addressing.ts';
import { parseNetworkConfig } from './config/config.ts';
import { podNetwork } from './pod-networks.ts';
import { parseHeader } from './protocol/header.ts';

const DUAL = [[{ subnet: '10.0.0.0/24' }, { subnet: '10.0.1.0/24' }], [{ subnet: 'fd00::/64', gateway: 'fd00::9' }]];

function addressing(change: object, addresses: readonly string[], ranges: object[][] = DUAL, routes: object[] = []) {
  const text = JSON.stringify({
    cniVersion: '1.0.0',
    name: 'net',
    ipam: { type: 'host-local', ranges, routes },
    ...change,
  });
  const config = parseNetworkConfig(parseHeader(text));
  if (config.ipam.kind !== 'native') throw new Error('the network has no ranges');
  const { rangeSets, routes: ofIpam } = config.ipam.config;
  const assigned = addresses.map((text, set) => {
    const { subnet, gateway } = rangeSets[set]![0];
    return { address: { address: parseIp(text), prefixLength: subnet.prefixLength }, gateway };
  });
  const found = podNetwork(config.mode).addressing.derive(config, { ips: assigned, routes: ofIpam, dns: {} });
  const { ips, bridgeAddresses, families } = found;
  return {
    ips: ips.map(({ address, gateway }) => `${formatCidr(address)} via ${gateway && formatIp(gateway)}`),
    routes: found.routes.map(({ destination, gateway }) =>
      gateway ? `${formatCidr(destination)} via ${formatIp(gateway)}` : formatCidr(destination),
    ),
    bridge: bridgeAddresses.map(formatCidr),
    families: [...families],
    ...(config.mode === 'bridge' && { configured: configuredGateways(config).map(formatCidr) }),
  };
}

describe('addressing', () => {
  it('gives each family its default route and the bridge its gateways', () => {
    expect(addressing({}, ['10.0.0.2', 'fd00::2'])).toEqual({
      ips: ['10.0.0.2/24 via 10.0.0.1', 'fd00::2/64 via fd00::9'],
      routes: ['0.0.0.0/0 via 10.0.0.1', '::/0 via fd00::9'],
      bridge: ['10.0.0.1/24', 'fd00::9/64'],
      families: ['IPv4', 'IPv6'],
      configured: ['10.0.0.1/24', '10.0.1.1/24', 'fd00::9/64'],
    });
  });

  it('keeps configured routes and adds no second default route', () => {
    const routes = [{ dst: '0.0.0.0/0', gw: '10.0.0.7' }, { dst: '10.96.0.0/12' }, { dst: 'fd01::/64' }];
    expect(addressing({}, ['10.0.0.2', 'fd00::2'], DUAL, routes).routes).toEqual([
      '0.0.0.0/0 via 10.0.0.7',
      '10.96.0.0/12 via 10.0.0.1',
      'fd01::/64 via fd00::9',
      '::/0 via fd00::9',
    ]);
  });

  it('leaves out routes of a family the pod has no address of', () => {
    const routes = [{ dst: '::/0' }, { dst: '0.0.0.0/0' }];
    expect(addressing({}, ['10.0.0.2'], [[{ subnet: '10.0.0.0/24' }]], routes).routes).toEqual([
      '0.0.0.0/0 via 10.0.0.1',
    ]);
  });

  it('routes by the first of two addresses of a family', () => {
    const ranges = [[{ subnet: '10.0.0.0/24' }], [{ subnet: '10.0.5.0/24' }]];
    const { routes, bridge } = addressing({}, ['10.0.0.2', '10.0.5.2'], ranges);
    expect(routes).toEqual(['0.0.0.0/0 via 10.0.0.1']);
    expect(bridge).toEqual(['10.0.0.1/24', '10.0.5.1/24']);
  });

  it('leaves the bridge alone when it is no gateway', () => {
    expect(addressing({ isGateway: false }, ['10.0.0.2', 'fd00::2'])).toMatchObject({
      routes: [],
      bridge: [],
      configured: [],
    });
  });

  it('gives a routed pod host addresses and one gateway a family, whatever the range says', () => {
    const routes = [{ dst: '10.96.0.0/12', gw: '10.0.0.7' }];
    expect(addressing({ mode: 'routed' }, ['10.0.0.2', 'fd00::2'], DUAL, routes)).toEqual({
      ips: ['10.0.0.2/32 via 169.254.1.1', 'fd00::2/128 via fe80::1'],
      routes: ['169.254.1.1/32', '10.96.0.0/12 via 169.254.1.1', '0.0.0.0/0 via 169.254.1.1', '::/0 via fe80::1'],
      bridge: [],
      families: ['IPv4', 'IPv6'],
    });
  });

  it('chooses the first address of the subnet where nobody names a gateway', () => {
    const header = parseHeader(JSON.stringify({ cniVersion: '1.0.0', name: 'net', ipam: { type: 'static' } }));
    const given = { address: parseAddressWithPrefix('10.0.3.77/22'), gateway: undefined };
    const config = parseNetworkConfig(header);
    const { derive } = podNetwork(config.mode).addressing;
    const { ips, bridgeAddresses } = derive(config, { ips: [given], routes: [], dns: {} });
    expect(ips.map(({ gateway }) => formatIp(gateway!))).toEqual(['10.0.0.1']);
    expect(bridgeAddresses.map(formatCidr)).toEqual(['10.0.0.1/22']);
  });
});
