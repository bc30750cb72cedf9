import type { CauseCode } from '../../../src/explain/index.ts';
import type { KubeObject } from '../../../src/kube/index.ts';
import { makeService } from '../../fakes/service-objects.ts';
import type { Host } from '../lab.ts';
import { type ExplainWorld, on, served } from './explain-world.ts';
import { type Faults, vethOf } from './faults.ts';

// Faults that any mode may meet, rules of somebody else being written with iptables.

export const VIP = { IPv4: '10.96.0.10', IPv6: 'fd00:96::10' } as const;
const FAR = { IPv4: '10.96.0.12', IPv6: 'fd00:96::12' } as const;
const HOST = '10.96.0.14';

/** What is broken, and where it shows. */
export interface Fault {
  readonly code: CauseCode;
  readonly vip: string;
  /** @default the client */
  readonly from?: Host;
  readonly break?: (tool: string) => void;
}

/** For `faultsOf`. A process of the node listens on 9000. */
export function faultObjects({ node, other, web, far }: ExplainWorld): KubeObject[] {
  return [
    ...served('shop/web', VIP.IPv4, [on(node, web.ip())]),
    ...served('shop/web6', VIP.IPv6, [on(node, web.ip('IPv6'))]),
    ...served('shop/far6', FAR.IPv6, [on(other, far.ip('IPv6'))]),
    ...served('shop/host', HOST, [on(node, node.ip())], {}, 9000),
    ...served('shop/closed', '10.96.0.15', [on(node, web.ip())], {}, 9999),
    makeService('shop/none', { clusterIP: '10.96.0.16' }),
    ...served('shop/local', '10.96.0.17', [on(other, far.ip())], { internalTrafficPolicy: 'Local' }),
    ...served('shop/dns', '10.96.0.18', [on(node, web.ip())], { ports: [{ port: 53, protocol: 'UDP' }] }),
  ];
}

/**
 * By what is wrong, in words.
 *
 * @param there the chain that what goes to an endpoint passes, translated
 */
export function faultsOf(
  world: ExplainWorld,
  faults: Faults,
  there: 'FORWARD' | 'OUTPUT',
): Readonly<Record<string, Fault>> {
  const { node, web, client } = world;
  const rule = (chain: string, words: string) => (tool: string) =>
    faults.run(tool, `-I ${chain} 1 ${words} -j DROP`, `-D ${chain} ${words} -j DROP`);
  return {
    'rules drop the packet': { code: 'foreign-drop', vip: VIP.IPv4, break: rule(there, '-p tcp --dport 8080') },
    'rules drop the packet, IPv6': { code: 'foreign-drop', vip: VIP.IPv6, break: rule(there, '-p tcp --dport 8080') },
    'rules drop the answer': { code: 'foreign-drop', vip: VIP.IPv4, break: rule('FORWARD', '-p tcp --sport 8080') },
    "the node's own firewall": { code: 'host-endpoint', vip: HOST, break: rule('INPUT', '-p tcp --dport 9000') },
    'another proxy in front': {
      code: 'old-proxy',
      vip: VIP.IPv4,
      break: () => {
        const dnat = `ip daddr ${VIP.IPv4} tcp dport 80 dnat to 10.244.1.200:8080`;
        const chain = `chain nat { type nat hook prerouting priority -110; ${dnat}; }`;
        faults.nft(`table ip kube-proxy { ${chain} }`, 'ip kube-proxy');
      },
    },
    'no route to the other node': {
      code: 'no-peer-route',
      vip: FAR.IPv6,
      break: () =>
        faults.ip(
          '-6 route add unreachable fd00:10:244:2::/65 metric 1',
          '-6 route del unreachable fd00:10:244:2::/65 metric 1',
        ),
    },
    'nothing is forwarded': {
      code: 'forwarding',
      vip: FAR.IPv6,
      break: () => faults.sysctl('net.ipv6.conf.all.forwarding', '0'),
    },
    'rp_filter is strict': {
      code: 'rp-filter',
      vip: VIP.IPv4,
      break: () => {
        faults.sysctl('net.ipv4.conf.all.rp_filter', '1');
        faults.ip(`route add ${client.ip()}/32 dev eth0`, `route del ${client.ip()}/32 dev eth0`);
      },
    },
    'a pair is down': {
      code: 'link-down',
      vip: VIP.IPv4,
      break: () => faults.ip(`link set ${vethOf(node, web)} down`, `link set ${vethOf(node, web)} up`),
    },
    'no hairpin': {
      code: 'hairpin',
      vip: VIP.IPv4,
      from: web,
      break: () => {
        const port = `link set dev ${vethOf(node, web)} hairpin`;
        faults.run('bridge', `${port} off`, `${port} on`);
      },
    },
    'frames pass by the rules': {
      code: 'bridge-nf',
      vip: VIP.IPv4,
      break: () => faults.sysctl('net.bridge.bridge-nf-call-iptables', '0'),
    },
    'nobody listens': { code: 'target-port', vip: '10.96.0.15' },
    'no endpoints': { code: 'no-endpoints', vip: '10.96.0.16' },
    'none of this node': { code: 'local-none', vip: '10.96.0.17' },
  };
}
