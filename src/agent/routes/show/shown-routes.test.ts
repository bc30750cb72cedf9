import { describe, expect, it } from 'vitest';
import { type IpFamily, parseCidr, parseIp } from '../../../core/index.ts';
import type { KernelPeer, KernelPeers } from '../../../routes/index.ts';
import type { FamilyReport, NodeReport, RoutesReport } from '../report.ts';
import { shownRoutes } from './shown-routes.ts';

const SINCE = '2026-11-22T10:00:00.000Z';
const NOTHING: KernelPeers = { peers: [], leftovers: [] };

function peer(changes: Partial<KernelPeer> = {}): KernelPeer {
  return {
    family: 'IPv4',
    mode: 'direct',
    device: 'eth0',
    gateway: parseIp('10.0.0.2'),
    address: parseIp('10.0.0.2'),
    podCidrs: [parseCidr('10.244.2.0/24')],
    mtu: 1500,
    reach: { verdict: 'yes', because: 'neighbour REACHABLE' },
    ...changes,
  };
}

function told(changes: Partial<NodeReport> = {}): NodeReport {
  const way = { mode: 'direct', gateway: '10.0.0.2', address: '10.0.0.2', podCidrs: ['10.244.2.0/24'] } as const;
  return { name: 'n2', way, leftOut: null, lastChange: SINCE, ...changes };
}

const report = (nodes: readonly NodeReport[], changes: Partial<FamilyReport> = {}): RoutesReport => ({
  node: 'n1',
  mode: 'auto',
  families: [{ family: 'IPv4', problem: null, total: nodes.length, nodes, ...changes }],
});

const shown = (kernel: readonly KernelPeer[], agent?: RoutesReport, leftovers: readonly string[] = []) =>
  shownRoutes({ IPv4: { peers: kernel, leftovers }, IPv6: NOTHING } as Record<IpFamily, KernelPeers>, agent);

describe('shownRoutes', () => {
  it('gives the kernel’s routes the names that the agent knows', () => {
    const { peers, drift, leftOut, problems, agent } = shown([peer()], report([told()]));
    expect({ drift, leftOut, problems, agent }).toEqual({ drift: [], leftOut: [], problems: [], agent: true });
    expect(peers).toEqual([
      {
        node: 'n2',
        family: 'IPv4',
        mode: 'direct',
        device: 'eth0',
        gateway: '10.0.0.2',
        address: '10.0.0.2',
        podCidrs: ['10.244.2.0/24'],
        mtu: 1500,
        lastChange: SINCE,
        reachable: 'yes',
        because: 'neighbour REACHABLE',
      },
    ]);
  });

  it('knows by its address who is reached by WireGuard, which needs no gateway', () => {
    const way = { mode: 'wireguard', gateway: null, address: '10.0.0.2', podCidrs: ['10.244.2.0/24'] } as const;
    const there = { mode: 'wireguard', device: 'nodeplane-wg', gateway: undefined } as const;
    const { peers, drift } = shown([peer(there)], report([told({ way })]));
    expect(drift).toEqual([]);
    expect(peers).toMatchObject([{ node: 'n2', mode: 'wireguard', gateway: null, address: '10.0.0.2' }]);
    expect(shown([peer()], report([told({ way })])).drift).toEqual([
      'n2: the IPv4 routes are direct, not by WireGuard',
    ]);
    const nobody = shown([peer({ ...there, address: undefined })], report([told({ way })]));
    expect(nobody.drift).toContain('n2: the IPv4 routes are missing');
  });

  it('shows what the kernel holds without an agent', () => {
    const routes = shown([peer()], undefined, ['nodeplane-v4 has a neighbour 10.244.9.0 that no route uses']);
    expect(routes).toMatchObject({ agent: false, leftOut: [], problems: [] });
    expect(routes.peers).toMatchObject([{ node: null, lastChange: null, gateway: '10.0.0.2' }]);
    expect(routes.drift).toEqual(['nodeplane-v4 has a neighbour 10.244.9.0 that no route uses']);
  });

  it('takes what is on a tunnel that an agent in mode host-gw keeps for others for no drift', () => {
    const leftovers = ['nodeplane-v4 has a neighbour 10.244.9.0 that no route uses'];
    expect(shown([peer()], { ...report([told()]), mode: 'host-gw' }, leftovers).drift).toEqual([]);
    expect(shown([peer()], report([told()]), leftovers).drift).toEqual(leftovers);
  });

  it('tells who is left out and why, and does not call it drift', () => {
    const leftOut = 'its pod CIDR overlaps ours';
    const nodes = [told({ name: 'n3', way: null, leftOut }), told({ leftOut: 'somebody else has 10.244.2.0/24' })];
    const routes = shown([peer({ podCidrs: [] })], report(nodes));
    expect(routes.leftOut.map(({ node, reason }) => [node, reason])).toEqual([
      ['n3', leftOut],
      ['n2', 'somebody else has 10.244.2.0/24'],
    ]);
    expect(routes.drift).toEqual([]);
  });

  it.each<[string, readonly KernelPeer[], readonly NodeReport[], readonly string[]]>([
    ['missing routes', [], [told()], ['n2: the IPv4 routes are missing']],
    ['routes of nobody', [peer()], [], ['IPv4: no Node has routes via 10.0.0.2 dev eth0']],
    ['one route missing', [peer({ podCidrs: [] })], [told()], ['n2: the route to 10.244.2.0/24 is missing']],
    [
      'a route too many',
      [peer({ podCidrs: [parseCidr('10.244.2.0/24'), parseCidr('10.9.0.0/16')] })],
      [told()],
      ["n2: the route to 10.9.0.0/16 is not the agent's"],
    ],
    [
      'another way',
      [peer({ mode: 'tunnel', address: undefined })],
      [told()],
      ['n2: the IPv4 routes are through the tunnel, not direct'],
    ],
    [
      'another node behind the tunnel',
      [peer({ mode: 'tunnel', address: parseIp('10.0.0.66') })],
      [told({ way: { mode: 'tunnel', gateway: '10.0.0.2', address: '10.0.0.7', podCidrs: ['10.244.2.0/24'] } })],
      ['n2: the IPv4 packets go to 10.0.0.66, not to 10.0.0.7'],
    ],
  ])('%s', (_, kernel, nodes, drift) => {
    expect(shown(kernel, report(nodes)).drift).toEqual(drift);
  });

  it('claims no drift about Nodes that were not told', () => {
    const { drift, problems } = shown([peer()], report([], { total: 6000, problem: 'no interface has the address' }));
    expect(drift).toEqual([]);
    expect(problems).toEqual([
      'IPv4: no interface has the address',
      'IPv4: 0 of 6000 Nodes were told; the others have no names here',
    ]);
  });

  it('puts ten thousand Nodes together in the order of their names', () => {
    const numbers = Array.from({ length: 10_000 }, (_, i) => i);
    const gateway = (i: number) => `10.1.${i >> 8}.${i & 255}`;
    const cidr = (i: number) => `10.${100 + (i >> 8)}.${i & 255}.0/24`;
    const kernel = numbers.map((i) =>
      peer({ gateway: parseIp(gateway(i)), address: parseIp(gateway(i)), podCidrs: [parseCidr(cidr(i))] }),
    );
    const nodes = numbers.map((i) =>
      told({
        name: `n${10_000 - i}`,
        way: { mode: 'direct', gateway: gateway(i), address: gateway(i), podCidrs: [cidr(i)] },
      }),
    );
    const { peers, drift } = shown(kernel, report(nodes));
    expect(drift).toEqual([]);
    expect(peers.slice(0, 3).map(({ node }) => node)).toEqual(['n1', 'n10', 'n100']);
  });
});
