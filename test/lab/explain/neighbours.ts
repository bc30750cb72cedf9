import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { IpFamily } from '../../../src/core/index.ts';
import type { ExplainWorld } from './explain-world.ts';

// Programs of clusters that a node has beside nodeplane, by what they write into the kernel: test/samples/neighbours.

/** Rules of iptables, and of nftables. */
export const NEIGHBOURS = {
  iptables: ['kube-router', 'calico', 'tailscale', 'wg-quick', 'leftovers', 'networks', 'nodelocaldns'],
  nftables: ['kube-router-nft', 'calico-nft', 'leftovers-nft'],
} as const;
export type NeighbourName = (typeof NEIGHBOURS)[keyof typeof NEIGHBOURS][number];

/** Where a neighbour is put. */
export interface Place {
  readonly world: ExplainWorld;
  /** `iptables-legacy`; of one of nftables not used. */
  readonly program: string;
  /** The address that NodeLocal DNSCache has beside its own. */
  readonly dns: string;
  /** @default IPv4 */
  readonly family?: IpFamily;
  /** Other words in place of some of its rules. @default none */
  readonly names?: Readonly<Record<string, string>>;
}

const TABLES = ['raw', 'mangle', 'nat', 'filter'];
/** What stands for it in the files, which are of IPv4. */
const IN_IPV6: readonly (readonly [RegExp, string])[] = [
  [/10\.244\.0\.0\/16/g, 'fd00:10:244::/48'],
  [/10\.96\.0\.0\/12/g, 'fd00:96::/112'],
  [/192\.168\.50\.0\/24/g, 'fd00:50::/64'],
  [/192\.168\.50\.200\/29/g, 'fd00:50::200/125'],
  [/\/32/g, '/128'],
  // What hosts find each other by is let pass too (CommonICMPRules, pkg/utils/iptables.go of kube-router).
  [
    /^-A KUBE-NWPLCY-COMMON -p icmp .*/gm,
    [128, 135, 136]
      .map((type) => `-A KUBE-NWPLCY-COMMON -p ipv6-icmp -m icmp6 --icmpv6-type ${type} -j ACCEPT`)
      .join('\n'),
  ],
  [/icmp-port-unreachable/g, 'icmp6-port-unreachable'],
  [/^#ipset add cali40this-host .*\n/gm, ''],
  [/^#ipset create (\S+ \S+)(?: family inet)?/gm, '#ipset create $1 family inet6'],
];

/** Loads what a neighbour has, as it would itself. @returns what removes it, all rules of others in the same tables included */
export function loadNeighbour(name: NeighbourName, place: Place): () => void {
  const { world, program, family = 'IPv4' } = place;
  const text = textOf(name, place);
  const marked = (word: string) => [...text.matchAll(new RegExp(`^#${word} (.*)`, 'gm'))].map(([, line]) => line!);
  const sh = (line: string) => world.run('sh', '-c', line);
  const file = join(world.lab.folder, `${name}.rules`);
  const rules = text.replace(/^#.*\n/gm, '');
  writeFileSync(file, rules);
  for (const line of marked('before')) sh(line);
  for (const line of marked('ipset')) sh(`ipset ${line}`);
  const tool = family === 'IPv4' ? program : program.replace('ip', 'ip6');
  const isNft = name.endsWith('-nft');
  sh(isNft ? `nft -f ${file}` : `${tool}-restore --noflush ${file}`);
  return () => {
    if (isNft) for (const [, table] of rules.matchAll(/^table (\S+ \S+)/gm)) sh(`nft delete table ${table}`);
    else for (const table of TABLES) sh(`${tool} -t ${table} -F; ${tool} -t ${table} -X 2>/dev/null || true`);
    for (const line of marked('after')) sh(line);
    sh('ipset destroy; conntrack -F 2>/dev/null');
  };
}

function textOf(name: NeighbourName, { world, dns, family = 'IPv4', names = {} }: Place): string {
  const { client, web, node } = world;
  const text = readFileSync(join(import.meta.dirname, '../../samples/neighbours', `${name}.rules`), 'utf8');
  const changed = family === 'IPv4' ? text : IN_IPV6.reduce((so, [from, to]) => so.replace(from, to), text);
  const renamed = Object.entries(names).reduce((so, [from, to]) => so.replaceAll(from, to), changed);
  return renamed
    .replaceAll('%client%', client.ip(family))
    .replaceAll('%web%', web.ip(family))
    .replaceAll('%node%', node.ip(family))
    .replaceAll('%dns%', dns);
}
