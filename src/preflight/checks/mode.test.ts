import { describe, expect, it } from 'vitest';
import { type Differences, look, shopService } from '../../../test/fakes/preflight-world.ts';
import { parseIp } from '../../core/index.ts';

const toNftables: Differences = { flags: ['--proxy-mode=nftables'], presentMode: 'iptables' };
const nodePort = shopService('web', {
  type: 'NodePort',
  clusterIP: '10.96.0.1',
  ports: [{ port: 80, nodePort: 30080 }],
});
const sctp = shopService('sig', { type: 'NodePort', ports: [{ port: 80, nodePort: 30081, protocol: 'SCTP' }] });
const sticky = shopService('cart', { clusterIP: '10.96.0.2', sessionAffinity: 'ClientIP' });
const vip = shopService('vip', { type: 'LoadBalancer' }, { loadBalancer: { ingress: [{ ip: '203.0.113.1' }] } });
const twoAddresses = {
  addresses: () =>
    ['192.168.50.1', '10.0.0.7'].map((ip, index) => ({ index, address: parseIp(ip), prefixLength: 24 }) as never),
};
const dropping = { saves: { legacy: '*filter\n:INPUT DROP\nCOMMIT\n' } };
const jump = (target: string) => ({ saves: { nft: `*nat\n:SITE -\n-A SITE -p tcp -j ${target}\nCOMMIT\n` } });

describe('what a change of mode alters, with the Services that it concerns', () => {
  it.each<[string, string, Differences]>([
    [
      'mode.localhost-nodeports',
      '127.0.0.1 any more: 1 Service (shop/web)',
      { ...toNftables, services: [nodePort, sticky] },
    ],
    [
      'mode.nodeport-addresses',
      'no longer at 10.0.0.7: 1 Service (shop/web)',
      { ...toNftables, services: [nodePort], node: twoAddresses },
    ],
    ['mode.session-affinity', '1 Service (shop/cart)', { ...toNftables, services: [nodePort, sticky] }],
    [
      'mode.sctp',
      '1 Service (shop/sig)',
      { flags: ['--proxy-mode=ipvs', '--localhost-nodeports'], presentMode: 'iptables', services: [nodePort, sctp] },
    ],
    ['mode.unknown-ports', '2 Services (shop/web, shop/cart)', { ...toNftables, services: [nodePort, sticky] }],
    ['mode.external-addresses', '1 Service (shop/vip)', { ...toNftables, services: [nodePort, vip] }],
    ['mode.firewall-holes', '1 Service (shop/web)', { ...toNftables, ...dropping, services: [nodePort] }],
    ['mode.mark-masq', 'chain SITE -> KUBE-MARK-MASQ', jump('KUBE-MARK-MASQ')],
    ['mode.kube-chains', 'chain SITE -> KUBE-NODEPORTS', jump('KUBE-NODEPORTS')],
  ])('%s: %s', async (check, words, differences) => {
    const { state, message, remedy } = await look(check, differences);
    expect(message).toContain(words);
    expect(state).toBe('warning');
    expect(remedy).toMatch(/\S/);
  });

  it.each<[string, string, Differences]>([
    [
      'mode.localhost-nodeports',
      'ok',
      { flags: ['--proxy-mode=nftables', '--localhost-nodeports'], presentMode: 'iptables', services: [nodePort] },
    ],
    ['mode.localhost-nodeports', 'ok', toNftables],
    ['mode.nodeport-addresses', 'ok', { ...toNftables, services: [nodePort] }],
    [
      'mode.nodeport-addresses',
      'ok',
      { flags: ['--proxy-mode=ipvs'], presentMode: 'iptables', services: [nodePort], node: twoAddresses },
    ],
    ['mode.session-affinity', 'skipped', { services: [sticky] }],
    ['mode.sctp', 'ok', { ...toNftables, services: [sctp] }],
    [
      'mode.unknown-ports',
      'skipped',
      { flags: ['--proxy-mode=nftables'], presentMode: 'nftables', services: [nodePort] },
    ],
    ['mode.external-addresses', 'ok', { ...toNftables, services: [nodePort] }],
    ['mode.firewall-holes', 'ok', { ...toNftables, services: [nodePort] }],
    ['mode.mark-masq', 'ok', {}],
    ['mode.kube-chains', 'ok', jump('SITE-OWN')],
    [
      'mode.kube-chains',
      'ok',
      {
        saves: {
          nft: '*nat\n:PREROUTING ACCEPT\n-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES\nCOMMIT\n',
        },
      },
    ],
    ['mode.change', 'ok', {}],
    [
      'mode.session-affinity',
      'skipped',
      { ...toNftables, cluster: { origin: { kind: 'none', reason: 'no API server is named' } } },
    ],
  ])('%s: %s', async (check, state, differences) => expect(await look(check, differences)).toMatchObject({ state }));

  it('the mode before is told by the rules that are there', async () => {
    const saves = { nft: '*nat\n:KUBE-SERVICES -\nCOMMIT\n' };
    const { message } = await look('mode.change', { flags: ['--proxy-mode=nftables'], saves });
    expect(message).toContain('from mode iptables to nftables');
  });

  it('10,000 Services make one short line', async () => {
    const services = Array.from({ length: 10_000 }, (_, n) => ({
      ...nodePort,
      metadata: { ...nodePort.metadata, name: `s-${n}` },
    }));
    const { message } = await look('mode.localhost-nodeports', { ...toNftables, services });
    expect(message).toContain('10000 Services (shop/s-0, shop/s-1, shop/s-2 and 9997 more)');
  });
});
