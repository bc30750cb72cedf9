import { expect, it } from 'vitest';
import { formatCidr, formatIp, parseCidr, parseIp } from '../../../core/index.ts';
import { routesByPodNetwork } from './pod-routes.ts';

const GATEWAYS = ['10.244.1.1', 'fd00:10:244:1::1'].map(parseIp);
const UNIVERSE = 0;
const LINK = 253;

function routes(
  gateways: typeof GATEWAYS,
  master: readonly (readonly [string, number])[],
  networks: readonly string[],
) {
  const addresses = master.map(([address, scope]) => ({ address: parseIp(address), scope }));
  return routesByPodNetwork(gateways, addresses, networks.map(parseCidr)).map(
    ({ destination, gateway }) => `${formatCidr(destination)} via ${formatIp(gateway!)}`,
  );
}

it('lead to each address of the master and each network, by the gateway of their family', () => {
  const master = [
    ['192.168.50.1', UNIVERSE],
    ['192.168.50.9', UNIVERSE],
    ['fd00:50::1', UNIVERSE],
    ['fe80::1', LINK],
  ] as const;
  expect(routes(GATEWAYS, master, ['10.96.0.0/12', 'fd00:96::/112'])).toEqual([
    '192.168.50.1/32 via 10.244.1.1',
    '192.168.50.9/32 via 10.244.1.1',
    'fd00:50::1/128 via fd00:10:244:1::1',
    '10.96.0.0/12 via 10.244.1.1',
    'fd00:96::/112 via fd00:10:244:1::1',
  ]);
});

it('leave out what is there twice, the gateway itself, and families the pod does not have', () => {
  const master = [
    ['192.168.50.1', UNIVERSE],
    ['10.244.1.1', UNIVERSE],
    ['fd00:50::1', UNIVERSE],
  ] as const;
  const networks = ['192.168.50.1/32', '10.96.0.0/12', '10.96.0.0/12', 'fd00:96::/112'];
  expect(routes([GATEWAYS[0]!], master, networks)).toEqual([
    '192.168.50.1/32 via 10.244.1.1',
    '10.96.0.0/12 via 10.244.1.1',
  ]);
  expect(routes([], master, networks)).toEqual([]);
});
