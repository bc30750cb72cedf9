import { expect, it } from 'vitest';
import { link, look } from '../../../test/fakes/preflight-world.ts';
import { parseAddressWithPrefix, parseCidr, parseIp } from '../../core/index.ts';
import type { Route } from '../../netlink/route/index.ts';
import { DEVICE_ALIAS } from '../../routes/index.ts';

it.each([
  ['ok', 'eth0 1500', DEVICE_ALIAS],
  ['warning', 'nodeplane-v4 1480: larger than the 1450', ''],
])('links.mtu: of a tunnel the agent keeps the MTU if it is ours: %s', async (state, message, alias) => {
  const tunnel = link('nodeplane-v4', { kind: 'vxlan', alias, mtu: 1480 });
  const finding = await look('links.mtu', { flags: ['--routes=vxlan'], node: { links: () => [tunnel] } });
  expect(finding).toMatchObject({ state, message: expect.stringContaining(message) });
});

it.each([
  ['ip link set cni0 mtu 1450; pods that run keep theirs', ['--routes=vxlan']],
  [
    'new pods get what the agent finds for them; pods that run keep theirs: make them anew',
    ['--routes=vxlan', '--cni'],
  ],
  ['give new pods 1500, by "mtu" in a --cni-conflist; pods that run keep theirs: make them anew', ['--cni']],
])('links.mtu: the bridge of pods is not set by hand where the agent keeps it: %s', async (remedy, flags) => {
  const node = { links: () => [link('cni0', { kind: 'bridge', mtu: 9000 })] };
  const finding = await look('links.mtu', { flags, node });
  expect(finding).toMatchObject({ state: 'warning', remedy: expect.stringContaining(remedy) });
});

const LINKS = [
  link('cni0', { index: 3, kind: 'bridge' }),
  link('flannel.1', { index: 4, kind: 'vxlan' }),
  link('eth0', { index: 2 }),
  link('nodeplane-v4', { index: 5, kind: 'vxlan', alias: DEVICE_ALIAS }),
];
const address = (text: string, index = 3) => ({ index, ...parseAddressWithPrefix(text) }) as never;

it.each([
  ['skipped', 'no --cni', [], ['10.42.1.1/24']],
  ['ok', 'no address', ['--cni'], ['10.244.1.1/24', 'fd00:42::1/64']],
  ['warning', 'cni0 has the address 10.42.1.1/24', ['--cni'], ['10.42.1.1/24']],
  ['ok', 'no address', ['--cni', '--cni-pod-cidrs=10.42.1.0/24'], ['10.42.1.1/24']],
])('links.bridge: %s, %s', async (state, words, flags, texts) => {
  const node = {
    links: () => LINKS,
    addresses: () => [address('192.168.50.1/24', 2), ...texts.map((text) => address(text))],
  };
  expect(await look('links.bridge', { flags, node })).toMatchObject({ state, message: expect.stringContaining(words) });
});

const [UNICAST, BLACKHOLE] = [1, 6];
const route = (destination: string, outInterface: number, more: Partial<Route> = {}) =>
  ({ family: 'IPv4', destination: parseCidr(destination), outInterface, type: UNICAST, protocol: 3, ...more }) as Route;
const FLAGS = ['--cni', '--routes=host-gw', '--cluster-cidr=10.244.0.0/16'];

it.each([
  ['blackhole 10.244.1.0/26', route('10.244.1.0/26', 0, { type: BLACKHOLE, protocol: 80 })],
  ['10.244.1.64/26 by eth0', route('10.244.1.64/26', 2)],
  ['10.244.2.0/26 by eth0', route('10.244.2.0/26', 2)],
  ['10.244.2.0/24 by flannel.1', route('10.244.2.0/24', 4)],
  ['10.244.2.0/24 by nodeplane-v4', route('10.244.2.0/24', 5)],
])('links.routes tells of "%s"', async (words, one) => {
  const finding = await look('links.routes', { flags: FLAGS, node: { links: () => LINKS, routes: () => [one] } });
  expect(finding).toMatchObject({ state: 'warning', message: expect.stringMatching(`: ${words}$`) });
  expect(finding.remedy).toContain(`ip route del ${words.split(' by ')[0]};`);
});

it.each([
  ['the bridge of pods that are here', route('10.244.1.0/24', 3, { protocol: 2 })],
  ['a node that is reached directly', route('10.244.2.0/24', 2)],
  ['what is ours', route('10.244.2.0/26', 2, { protocol: 78 })],
  ['the address of our tunnel', route('10.244.1.0/32', 5, { protocol: 2 })],
  ['more than the pods’ range', route('10.0.0.0/8', 4)],
])('links.routes lets pass %s', async (_, one) => {
  const finding = await look('links.routes', { flags: FLAGS, node: { links: () => LINKS, routes: () => [one] } });
  expect(finding.state).toBe('ok');
});

it.each([
  [1500, 'ok', '1450 of 1500'],
  [1300, 'fails', 'Cannot carry IPv6 by VXLAN over "eth0": its MTU of 1300 leaves 1230 bytes, IPv6 needs 1280'],
])('links.tunnel-mtu looks at IPv6, too, where pods have it: MTU %i', async (mtu, state, words) => {
  const attachment = { index: 2, name: 'eth0', mtu, prefixes: [] };
  const underlay = (family: string) => ({
    ...attachment,
    address: parseIp(family === 'IPv4' ? '192.168.50.1' : 'fd00:50::1'),
  });
  const finding = await look('links.tunnel-mtu', {
    flags: ['--routes=vxlan', '--cni', '--cni-pod-cidrs=10.244.1.0/24,fd00:10:244:1::/64'],
    node: { underlay },
  });
  expect(finding).toMatchObject({ state, message: expect.stringContaining(words) });
});
