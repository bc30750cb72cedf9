import { describe, expect, it } from 'vitest';
import { type Differences, link, look, shopService } from '../../../test/fakes/preflight-world.ts';
import { parseIp } from '../../core/index.ts';
import type { Service } from '../../kube/index.ts';

const CHECK = 'cluster.refused-addresses';
const OWN = '192.168.50.1';
const FLOATING = '192.168.50.77';

const external = (name: string, ...externalIPs: string[]) =>
  shopService(name, { clusterIP: '10.96.0.1', externalIPs, ports: [{ port: 80 }] });
const vip = (name: string, ip: string): Service =>
  shopService(
    name,
    { type: 'LoadBalancer', clusterIP: '10.96.0.2', ports: [{ port: 80 }] },
    {
      loadBalancer: { ingress: [{ ip }] },
    },
  );
const addresses = (...held: [ip: string, prefixLength: number, index?: number][]): Differences => ({
  node: {
    links: () => [link('kube-ipvs0', { index: 9 })],
    addresses: () =>
      held.map(([ip, prefixLength, index = 2]) => ({ index, address: parseIp(ip), prefixLength }) as never),
  },
});

describe('what will be refused', () => {
  it.each<[string, string, Differences]>([
    ['an address of the node', `shop/web: spec.externalIPs has ${OWN}`, { services: [external('web', OWN)] }],
    ['a VIP too', `shop/web: status.loadBalancer.ingress has ${OWN}`, { services: [vip('web', OWN)] }],
    [
      'what is on an interface with a network',
      `${FLOATING}, which is an address of this node`,
      { services: [external('web', FLOATING)], ...addresses([OWN, 24], [FLOATING, 24]) },
    ],
    [
      'the API server',
      "192.168.50.9, which is the API server's address",
      { services: [external('web', '192.168.50.9')] },
    ],
    [
      'a ClusterIP that is the node’s',
      `spec.clusterIPs has ${OWN}`,
      { services: [shopService('web', { clusterIP: OWN, ports: [{ port: 80 }] })] },
    ],
  ])('%s', async (_, words, differences) => {
    const { state, message, remedy } = await look(CHECK, differences);
    expect(message).toContain('1 Service has an address that kube-proxy serves and nodeplane refuses: ');
    expect(message).toContain(words);
    expect(state).toBe('warning');
    expect(remedy).toContain('docs/operations.md');
  });

  it('is counted, and the first few are named', async () => {
    const services = Array.from({ length: 5 }, (_, n) => external(`web-${n}`, OWN));
    const { message } = await look(CHECK, { services });
    expect(message).toMatch(/^5 Services have addresses .* and 2 more$/);
  });
});

it.each<[string, string, Differences]>([
  ['others', 'ok', { services: [external('web', '203.0.113.1'), vip('vip', '203.0.113.2')] }],
  ['a VIP on an interface', 'ok', { services: [vip('vip', FLOATING)], ...addresses([OWN, 24], [FLOATING, 24]) }],
  ['what stands alone', 'ok', { services: [external('web', FLOATING)], ...addresses([OWN, 24], [FLOATING, 32]) }],
  [
    'what a kube-proxy in mode ipvs put there',
    'ok',
    { services: [external('web', FLOATING)], ...addresses([OWN, 24], [FLOATING, 24, 9]) },
  ],
  [
    'external IPs that are switched off for all',
    'ok',
    { flags: ['--feature-gates=AllowServiceExternalIPs=false'], services: [external('web', OWN)] },
  ],
  ['no cluster', 'skipped', { cluster: { origin: { kind: 'none', reason: 'no API server is named' } } }],
])('%s: %s', async (_, state, differences) => {
  expect(await look(CHECK, differences)).toMatchObject({ state });
});
