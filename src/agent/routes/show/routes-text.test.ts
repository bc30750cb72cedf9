import { describe, expect, it } from 'vitest';
import { routesText } from './routes-text.ts';
import type { ShownPeer, ShownRoutes } from './shown-routes.ts';

const PEER: ShownPeer = {
  node: 'n2',
  family: 'IPv4',
  mode: 'tunnel',
  device: 'nodeplane-v4',
  gateway: '10.244.2.0',
  address: '192.168.1.2',
  podCidrs: ['10.244.2.0/24'],
  mtu: 1450,
  lastChange: '2026-11-22T10:00:00.123Z',
  reachable: 'unknown',
  because: 'no neighbour',
};
const EMPTY: ShownRoutes = { agent: true, peers: [], leftOut: [], drift: [], problems: [] };

describe('routesText', () => {
  it('sums up in its first line, then shows peers, who is left out, drift and problems', () => {
    const direct: ShownPeer = {
      ...PEER,
      node: null,
      mode: 'direct',
      device: 'eth0',
      lastChange: null,
      podCidrs: Array.from({ length: 7 }, (_, i) => `10.244.${i}.0/24`),
      reachable: 'no',
      because: 'eth0 has no carrier',
    };
    const leftOut = [{ node: 'n9', family: 'IPv6', reason: 'its pod CIDR overlaps ours', lastChange: '' }] as const;
    const routes = { agent: true, peers: [PEER, direct], leftOut, drift: ['n3: missing'], problems: ['IPv6: waits'] };
    const [summary, blank, head, ...rows] = routesText(routes).split('\n');
    expect([summary, blank]).toEqual([
      '2 peers, 1 direct, 1 tunnel, 0 wireguard, 1 not reachable, 1 left out, 1 drift',
      '',
    ]);
    const columns = (row: string | undefined) => row?.split(/ {2,}/);
    const titles = ['NODE', 'MODE', 'DEVICE', 'GATEWAY', 'ADDRESS', 'POD CIDRS', 'MTU', 'LAST CHANGE', 'REACHABLE'];
    expect(columns(head)).toEqual(titles);
    const place = ['10.244.2.0', '192.168.1.2'];
    const since = '2026-11-22T10:00:00Z';
    const four = '10.244.0.0/24,10.244.1.0/24,10.244.2.0/24,10.244.3.0/24 and 3 more';
    expect(rows.slice(0, 2).map(columns)).toEqual([
      ['n2', 'tunnel', 'nodeplane-v4', ...place, '10.244.2.0/24', '1450', since, 'unknown (no neighbour)'],
      ['-', 'direct', 'eth0', ...place, four, '1450', '-', 'no (eth0 has no carrier)'],
    ]);
    expect(rows[0]!.indexOf('unknown')).toBe(head!.indexOf('REACHABLE'));
    expect(rows.slice(2).join('\n')).toBe(`
LEFT OUT
  n9 (IPv6): its pod CIDR overlaps ours

DRIFT
  n3: missing

PROBLEMS
  IPv6: waits
`);
  });

  it('says what cannot be known without an agent, and no more than one line when there is nothing', () => {
    expect(routesText({ ...EMPTY, agent: false })).toBe(
      '0 peers, 0 direct, 0 tunnel, 0 wireguard, 0 not reachable, left out: not known without an agent, 0 drift\n',
    );
  });

  it('shows what a Node is called as text, whatever it holds', () => {
    const name = 'n\u001b[2J\n\u202e2';
    const leftOut = [{ node: name, family: 'IPv4', reason: name, lastChange: '' }] as const;
    const text = routesText({
      agent: true,
      peers: [{ ...PEER, node: name }],
      leftOut,
      drift: [name],
      problems: [name],
    });
    expect(text).not.toMatch(/[\u001b\u202e]/);
    expect(text.split('\n')).toHaveLength(14);
    expect(text).toContain('n\\u001b[2J\\u000a\\u202e2');
  });
});
