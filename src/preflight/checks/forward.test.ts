import { expect, it } from 'vitest';
import { type Differences, look } from '../../../test/fakes/preflight-world.ts';

const rules = (table: string, ...lines: readonly string[]) => [`*${table}`, ...lines, 'COMMIT', ''].join('\n');
const cni = ['--cni'];
const acceptPods = (way: string) => `-A FORWARD -${way} 10.244.0.0/16 -m comment --comment "pods, of all" -j ACCEPT`;
const dropping = (family: 'ip' | 'inet', table: string, name: string) => ({
  nftables: () => ({
    tables: [],
    chains: [
      {
        kind: 'chain',
        family,
        table,
        name,
        base: { type: 'filter', hook: 'forward', priority: 0, policy: 'drop' },
      } as const,
    ],
  }),
});

const CASES: readonly (readonly [state: string, words: string, differences: Differences])[] = [
  ['ok', 'accepts', {}],
  ['warning', 'chain FORWARD', { saves: { legacy: rules('filter', ':FORWARD DROP') } }],
  ['warning', 'as Docker', { saves: { legacy: rules('filter', ':FORWARD DROP', ':DOCKER -') } }],
  ['warning', 'as ufw', { saves: { legacy: rules('filter', ':FORWARD DROP', ':ufw-input -') } }],
  ['warning', 'through iptables-legacy', { flags: cni, saves: { legacy: rules('filter', ':FORWARD DROP') } }],
  [
    'ok',
    'accepts',
    {
      flags: cni,
      saves: { legacy: rules('filter', ':FORWARD DROP', ...['s', 'd'].map(acceptPods), '-A FORWARD -j LOG') },
    },
  ],
  [
    'warning',
    'through iptables-legacy',
    { saves: { legacy: rules('filter', ':FORWARD DROP', acceptPods('s')) }, flags: cni },
  ],
  [
    'warning',
    'through iptables-legacy',
    {
      flags: cni,
      saves: { legacy: rules('filter', ':FORWARD DROP', '-A FORWARD -j DROP', ...['s', 'd'].map(acceptPods)) },
    },
  ],
  [
    'ok',
    'accepts',
    {
      flags: cni,
      saves: {
        legacy: rules('filter', ':FORWARD DROP', '-A FORWARD -i cni0 -j ACCEPT', '-A FORWARD -o cni0 -j ACCEPT'),
      },
    },
  ],
  ['ok', 'lets pods through', { flags: cni, node: dropping('ip', 'filter', 'FORWARD') }],
  ['warning', 'through nftables table ip fw', { flags: cni, node: dropping('ip', 'fw', 'FORWARD') }],
  ['warning', 'nftables table inet filter', { flags: cni, node: dropping('inet', 'filter', 'forward') }],
  [
    'ok',
    'lets pods through',
    {
      flags: cni,
      saves: { nft: rules('filter', ':FORWARD ACCEPT', '-A FORWARD -j REJECT --reject-with icmp-host-prohibited') },
    },
  ],
  [
    'warning',
    'through iptables-nft IPv4, table filter, chain reject',
    {
      flags: cni,
      node: dropping('ip', 'filter', 'FORWARD'),
      saves: {
        nft: rules(
          'filter',
          ':FORWARD DROP',
          ':reject -',
          '-A FORWARD -g reject',
          '-A reject -p tcp -j DROP',
          '-A reject -m comment --comment "the rest" -j REJECT',
        ),
      },
    },
  ],
  [
    'ok',
    'accepts',
    {
      flags: cni,
      saves: {
        nft: rules(
          'filter',
          ':FORWARD ACCEPT',
          ':some -',
          '-A FORWARD -j some',
          '-A FORWARD -j LOG',
          '-A some -i eth0 -j DROP',
          '-A some -j ACCEPT',
          '-A some -j DROP',
        ),
      },
    },
  ],
];

it.each(CASES)('%s: %s', async (state, words, differences) => {
  const outcome = await look('rules.forward', differences);
  expect(outcome).toMatchObject({ state, message: expect.stringContaining(words) });
  if (state === 'warning') expect(outcome.remedy).toMatch(/<pod CIDR>|<bridge>/);
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
