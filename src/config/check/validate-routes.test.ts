import { expect, it } from 'vitest';
import { formatCidr } from '../../core/index.ts';
import type { Configuration } from '../file/schema.ts';
import { formatProblem, Problems } from '../problems.ts';
import { readRoutes } from './validate-routes.ts';

type Masquerade = Configuration['nodeplane']['routes']['masquerade'];

function read(masquerade: Partial<Masquerade>, mode = 'vxlan', { tunnel = 'vxlan', annotations = false } = {}) {
  const problems = new Problems();
  const routes = readRoutes(
    {
      mode,
      tunnel,
      vni: 1,
      port: 8472,
      mtu: 0,
      interface: '',
      wireguard: { port: 51820, keepalive: 0, keyFile: '/var/lib/nodeplane/wireguard.key' },
      masquerade: { cidrs: ['ipv4', 'ipv6'], nonMasqueradeCIDRs: null, randomFully: true, ...masquerade },
      clearNetworkUnavailable: true,
      flannel: { annotations, netConf: '', subnetFile: '' },
    },
    '',
    problems,
  );
  return { settings: routes?.masquerade, routes, problems: problems.found.map((problem) => formatProblem(problem)) };
}

it('masquerades the pods of this node in both families, unless told otherwise', () => {
  expect(read({}).settings).toEqual({ ownPods: ['IPv4', 'IPv6'], sources: [], exempt: [], randomFully: true });
  expect(read({ cidrs: ['ipv6'] }).settings?.ownPods).toEqual(['IPv6']);
  const { sources, exempt } = read({ cidrs: ['ipv4', 'fd00::/16'], nonMasqueradeCIDRs: ['10.0.0.0/8'] }).settings!;
  expect([sources, exempt].map((ranges) => ranges.map(formatCidr))).toEqual([['fd00::/16'], ['10.0.0.0/8']]);
});

it('masquerades nothing with "none"', () => {
  expect(read({ cidrs: ['none'] })).toMatchObject({ settings: undefined, routes: { mode: 'vxlan' }, problems: [] });
});

it('reads nothing of it without routes', () => {
  expect(read({ cidrs: ['x'] }, 'none')).toMatchObject({ routes: undefined, problems: [] });
});

it.each([
  ['vxlan', 'wireguard', []],
  ['auto', 'vxlan', []],
  ['wireguard', 'vxlan', ['nodes of flannel do not reach pods']],
  ['auto', 'wireguard', ['nodes of flannel do not reach pods']],
])('tells nodes of flannel only what they can use: %s, %s', (mode, tunnel, problems) => {
  expect(read({}, mode, { tunnel, annotations: true }).problems).toEqual(
    problems.map((text) => expect.stringContaining(text)),
  );
});

it.each([
  [{ cidrs: ['none', 'ipv4'] }, '"none" stands for itself and cannot be mixed with others'],
  [{ cidrs: ['IPv4'] }, '(--masquerade-cidrs): "IPv4" is not a CIDR'],
  [{ nonMasqueradeCIDRs: ['10.0.0.1'] }, '(--non-masquerade-cidrs): "10.0.0.1" is not a CIDR'],
])('refuses %j', (masquerade, words) => {
  expect(read(masquerade).problems.join()).toContain(words);
});
