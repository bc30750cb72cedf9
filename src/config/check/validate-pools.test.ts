import { expect, it } from 'vitest';
import { configOf, refusalOf } from '../../../test/fakes/command-line.ts';
import { formatCidr } from '../../core/index.ts';

const AGENT = { program: 'nodeplane agent' } as const;
const POOL = ['--cni', '--pod-cidrs-from=pool'];
const poolsOf = (...argv: string[]) => configOf(argv, undefined, AGENT).pools;
const refused = (...argv: string[]) => refusalOf(argv, undefined, AGENT);

it('are none by default, whatever else is said of them', () => {
  expect(poolsOf()).toBeUndefined();
  expect(poolsOf('--pool-block-size=99', '--pool-cidrs=x')).toBeUndefined();
});

it('are read from flags and file', () => {
  const pools = poolsOf(
    ...POOL,
    '--pool-cidrs=10.1.0.0/16,fd00::/64',
    '--pool-block-size=28',
    '--pool-reclaim-after=5m',
  );
  expect(pools).toMatchObject({ blockSizes: { IPv4: 28, IPv6: 122 }, reclaimMs: 300_000 });
  expect(pools!.cidrs.map(formatCidr)).toEqual(['10.1.0.0/16', 'fd00::/64']);
  const file = 'nodeplane: {cni: {enabled: true}, pools: {podCIDRsFrom: pool, cidrs: [10.1.0.0/16]}}\n';
  expect(configOf([], file, AGENT).pools).toMatchObject({ blockSizes: { IPv4: 26, IPv6: 122 }, reclaimMs: 900_000 });
});

it.each([
  [['--pod-cidrs-from=cloud'], '"cloud" is none of "node", "pool"'],
  [POOL, '(--pool-cidrs): "" is empty: name the pools of the cluster'],
  [[...POOL, '--pool-cidrs=10.1.0.0'], 'pool-cidrs'],
  [[...POOL, '--pool-cidrs=10.1.0.0/16', '--pool-block-size=31'], '31 is not within 8 and 30'],
  [[...POOL, '--pool-cidrs=10.1.0.0/16', '--pool-block-size-ipv6=127'], '127 is not within 64 and 126'],
  [[...POOL, '--pool-cidrs=10.1.0.0/16', '--pool-reclaim-after=1m'], 'must not be less than 3m'],
  [
    ['--pod-cidrs-from=pool', '--pool-cidrs=10.1.0.0/16'],
    '"pool" is for nodes whose pods get their network from --cni',
  ],
  [[...POOL, '--pool-cidrs=10.1.0.0/16', '--cni-pod-cidrs=10.2.0.0/24'], 'are the pools’ to give: leave it out'],
  [[...POOL, '--pool-cidrs=10.1.0.0/16', '--detect-local-mode=NodeCIDR'], 'which pools do not write: use ClusterCIDR'],
] as const)('%j is refused', (argv, why) => expect(refused(...argv)).toContain(why));
