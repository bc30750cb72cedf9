import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../core/index.ts';
import { readCommandLine } from '../command-line.ts';
import { checkFamilies } from './check-families.ts';

function check(argv: string[], node: { primary?: 'IPv4' | 'IPv6'; dualStack?: boolean; podCidrs?: string[] } = {}) {
  const outcome = readCommandLine(argv, { program: 'kube-proxy', version: '', hostname: 'n', readFile: () => '' });
  if (outcome.action !== 'run') throw new Error(outcome.action);
  return checkFamilies(outcome.config, {
    primary: node.primary ?? 'IPv4',
    dualStack: node.dualStack ?? true,
    podCidrs: (node.podCidrs ?? []).map(parseCidr),
  });
}

const PRIMARY = '--nodeport-addresses=primary';
const NONE = { advice: [], warnings: [], fatal: [] };

describe('checkFamilies', () => {
  it('advises primary when NodePorts are open everywhere', () => {
    expect(check([])).toEqual({
      ...NONE,
      advice: [expect.stringMatching(/Consider --nodeport-addresses=primary$/)],
    });
    expect(check([PRIMARY])).toEqual(NONE);
  });

  it.each([
    [['--nodeport-addresses=10.0.0.0/8'], {}, undefined],
    [
      ['--nodeport-addresses=10.0.0.0/8', '--cluster-cidr=10.0.0.0/8,fd00::/8'],
      {},
      'The cluster looks dual-stack but nodePortAddresses has only IPv4',
    ],
    [['--nodeport-addresses=10.0.0.0/8'], { podCidrs: ['10.0.0.0/24', 'fd00::/64'] }, 'The cluster looks dual-stack'],
    [['--nodeport-addresses=10.0.0.0/8,fd00::/8', '--cluster-cidr=10.0.0.0/8,fd00::/8'], {}, undefined],
    [['--nodeport-addresses=fd00::/8'], {}, 'The cluster is IPv4-primary but nodePortAddresses has only IPv6'],
    [
      ['--nodeport-addresses=10.0.0.0/8'],
      { primary: 'IPv6' as const },
      'The cluster is IPv6-primary but nodePortAddresses has only IPv4',
    ],
  ])('%j on %j', (argv, node, warning) => {
    const { warnings, fatal } = check(argv, node);
    expect(fatal).toEqual([]);
    expect(warnings).toEqual(warning === undefined ? [] : [expect.stringContaining(warning)]);
  });

  it('finds pod addresses of the other family, which are fatal where nothing else tells local pods', () => {
    const cluster = [PRIMARY, '--cluster-cidr=fd00::/8'];
    expect(check(cluster)).toEqual({ ...NONE, warnings: [expect.stringContaining('clusterCIDR has only IPv6')] });
    expect(check(cluster, { dualStack: false })).toEqual({
      ...NONE,
      fatal: [expect.stringContaining('clusterCIDR has only IPv6')],
    });
    const pods = { podCidrs: ['fd00::/64'] };
    expect(check([PRIMARY], pods)).toEqual({
      ...NONE,
      warnings: [expect.stringContaining('podCIDRs have only IPv6')],
    });
    expect(check([PRIMARY, '--detect-local-mode=NodeCIDR'], pods)).toEqual({
      ...NONE,
      fatal: [expect.stringContaining('podCIDRs have only IPv6')],
    });
  });

  it('finds addresses that a single-stack node does not have', () => {
    const argv = [
      PRIMARY,
      '--proxy-mode=ipvs',
      '--ipvs-exclude-cidrs=fd00::/8',
      '--healthz-bind-address=::',
      '--metrics-bind-address=::1',
    ];
    expect(check(argv)).toEqual(NONE);
    expect(check(argv, { dualStack: false }).warnings).toEqual([
      expect.stringContaining('ipvs.excludeCIDRs'),
      expect.stringContaining('metricsBindAddress is an IPv6 address'),
    ]);
  });
});
