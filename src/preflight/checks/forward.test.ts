import { expect, it } from 'vitest';
import { type Differences, look } from '../../../test/fakes/preflight-world.ts';
import type { PodPackets, Refusal } from '../../cni/index.ts';
import { formatCidr } from '../../core/index.ts';

const rules = (table: string, ...lines: readonly string[]) => [`*${table}`, ...lines, 'COMMIT', ''].join('\n');
const cni = ['--cni'];
const refusal = (differences: Partial<Refusal>): Differences => ({
  node: {
    refusals: () => [
      { owner: 'iptables-legacy', family: 'ip', table: 'filter', base: 'FORWARD', chain: 'FORWARD', ...differences },
    ],
  },
});

// What refuses pods is asked of the kernel: test/lab/preflight/forward.test.ts.
const CASES: readonly (readonly [state: string, words: string, remedy: string, differences: Differences])[] = [
  ['ok', 'lets pods through', '', {}],
  ['warning', 'not forwarded: iptables-legacy IPv4 (chain FORWARD)', 'iptables-legacy -I FORWARD', refusal({})],
  ['warning', 'iptables-nft IPv6', 'ip6tables-nft -I FORWARD', refusal({ owner: 'iptables-nft', family: 'ip6' })],
  ['warning', 'as Docker', '-I FORWARD', { ...refusal({}), saves: { legacy: rules('filter', ':DOCKER -') } }],
  ['warning', 'as ufw', 'ufw route allow', { ...refusal({}), saves: { legacy: rules('filter', ':ufw-input -') } }],
  // Its chains are in the other variant.
  ['warning', 'FORWARD)', '-I FORWARD', { ...refusal({}), saves: { nft: rules('filter', ':ufw-input -') } }],
  ['warning', 'through iptables-legacy', '-I FORWARD', { ...refusal({}), flags: cni }],
  ['ok', 'lets pods through', '', { ...refusal({ owner: 'iptables-nft' }), flags: cni }],
  [
    'warning',
    'through iptables-nft IPv4 (chain reject)',
    'iptables-nft -I FORWARD -s',
    { ...refusal({ owner: 'iptables-nft', chain: 'reject' }), flags: cni },
  ],
  [
    'warning',
    'through nftables table inet fw (chain forward)',
    'nft insert rule inet fw forward ip saddr',
    { ...refusal({ owner: 'nftables', family: 'inet', table: 'fw', base: 'forward', chain: 'forward' }), flags: cni },
  ],
];

it.each(CASES)('%s: %s', async (state, words, remedy, differences) => {
  const outcome = await look('rules.forward', differences);
  expect(outcome).toMatchObject({ state, message: expect.stringContaining(words) });
  expect(outcome.remedy ?? '').toContain(remedy);
});

it.each([
  [[], ['10.244.1.0/24']],
  [['--cluster-cidr=10.244.0.0/16,fd00::/56'], ['10.244.1.0/24', '10.244.0.0/16', 'fd00::/56']],
])('asks for what the ranges of pods send and get: %j', async (flags, expected) => {
  const asked: string[] = [];
  const refusals = (packets: readonly PodPackets[]) => {
    asked.push(...packets.map(({ direction, subnet }) => `${direction} ${formatCidr(subnet)}`));
    return [];
  };
  await look('rules.forward', { flags, node: { refusals } });
  expect(asked).toEqual(expected.flatMap((range) => [`from ${range}`, `to ${range}`]));
});

it.each([
  [[], 'the tunnel’s UDP port, if there is one'],
  [['--routes=host-gw'], undefined],
  [['--routes=vxlan', '--routes-port=4789'], 'UDP port 4789, the tunnel’s'],
  [['--routes=wireguard'], 'UDP port 51820, the tunnel’s'],
])('of a firewall the port of the tunnel is named, where there is one: %j', async (flags, port) => {
  const { remedy } = await look('rules.firewall', { flags, saves: { nft: rules('filter', ':ufw-user-input -') } });
  expect(remedy!.split('; let other nodes reach ')[1]).toBe(port);
});
