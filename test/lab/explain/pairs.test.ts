import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, type Pod, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults, vethOf } from './faults.ts';

// Pods on pairs of their own, without a bridge: they send to an address that nobody has (169.254.1.1), for which the
// node answers (proxy_arp).

const VIP = '10.96.0.10';
const VIP6 = 'fd00:96::10';
const NODE_PORT = 30_080;
const GATEWAY = '169.254.1.1';
const NOBODY = '02:00:00:00:00:01';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;
const [WEB, CLIENT, WEB6, CLIENT6] = [web.ip(), client.ip(), web.ip('IPv6'), client.ip('IPv6')];
const [toWeb, toClient] = [vethOf(node, web), vethOf(node, client)];

const shell = (host: Host, ...lines: string[]) => host.namespace.run('sh', '-ec', lines.join('\n'));
const onPair = (pod: Pod, veth: string) => {
  const settings = [
    `ipv4.conf.${veth}.proxy_arp=1`,
    `ipv4.neigh.${veth}.proxy_delay=0`,
    `ipv6.conf.${veth}.disable_ipv6=0`,
  ];
  shell(
    node,
    `ip link set ${veth} nomaster down`,
    ...settings.map((setting) => `sysctl -qw net.${setting}`),
    `ip link set ${veth} addrgenmode none up`,
    `ip address add fe80::1/64 dev ${veth} nodad`,
    `ip route add ${pod.ip()}/32 dev ${veth}`,
    `ip route add ${pod.ip('IPv6')}/128 dev ${veth}`,
  );
  shell(
    pod,
    'ip address flush dev eth0 scope global',
    `ip address add ${pod.ip()}/32 dev eth0`,
    `ip address add ${pod.ip('IPv6')}/128 dev eth0 nodad`,
    `ip route add ${GATEWAY} dev eth0 scope link`,
    `ip route add default via ${GATEWAY} dev eth0`,
    'ip -6 route replace default via fe80::1 dev eth0',
  );
};

beforeAll(async () => {
  onPair(web, toWeb);
  onPair(client, toClient);
  const ports = { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] } as const;
  await world.begin([
    ...served('shop/web', VIP, [on(node, WEB)], ports),
    ...served('shop/web6', VIP6, [on(node, WEB6)]),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const set = (name: string, value: string, host: Host = node) => faults.sysctl(`net.${name}`, value, host);
const takes = (host: Host, mac: string, ip: string, device: string) =>
  faults.ip(`neigh replace ${ip} lladdr ${mac} dev ${device} nud permanent`, `neigh del ${ip} dev ${device}`, host);
const noArp = (host: Host, device: string) =>
  faults.ip(`link set ${device} arp off`, `link set ${device} arp on`, host);
/** Whoever writes the setting of all writes those of all links. */
const linksForwardAlone = () => {
  set('ipv4.ip_forward', '0');
  for (const link of [toWeb, toClient, 'eth0']) set(`ipv4.conf.${link}.forwarding`, '1');
};

it.each<[string, () => void]>([
  ['nothing', () => {}],
  ['a node that does not answer the client', () => set(`ipv4.conf.${toClient}.proxy_arp`, '0')],
  ['a node that does not answer the endpoint', () => set(`ipv4.conf.${toWeb}.proxy_arp`, '0')],
  ['a node that forwards nothing from the client', () => set(`ipv4.conf.${toClient}.forwarding`, '0')],
  ['a node that forwards, and so answers, nothing from the endpoint', () => set(`ipv4.conf.${toWeb}.forwarding`, '0')],
  ['links that forward although the node does not', linksForwardAlone],
  ['a node that forwards no IPv6', () => set('ipv6.conf.all.forwarding', '0')],
  [
    'a node that forwards IPv6 of the client alone',
    () => {
      set('ipv6.conf.all.forwarding', '0');
      set(`ipv6.conf.${toClient}.force_forwarding`, '1');
    },
  ],
  ['a node that answers for its own addresses nowhere', () => set('ipv4.conf.all.arp_ignore', '8')],
  ['an endpoint that answers its own subnet alone', () => set('ipv4.conf.all.arp_ignore', '2', web)],
  ['a client that answers its own subnet alone', () => set('ipv4.conf.all.arp_ignore', '2', client)],
  ['a client that takes nobody for its gateway', () => takes(client, NOBODY, GATEWAY, 'eth0')],
  ['an endpoint that takes nobody for its gateway', () => takes(web, NOBODY, GATEWAY, 'eth0')],
  ['a node that takes nobody for the client', () => takes(node, NOBODY, CLIENT, toClient)],
  ['a node that takes nobody for the endpoint', () => takes(node, NOBODY, WEB, toWeb)],
  ['no ARP to the client', () => noArp(node, toClient)],
  ['no ARP to the endpoint', () => noArp(node, toWeb)],
  [
    'a client that sends to an address of the node on another link',
    () => faults.ip(`route add ${VIP}/32 via ${node.ip()} dev eth0 onlink`, `route del ${VIP}/32`, client),
  ],
  [
    'the same, where the node answers on that link alone',
    () => {
      faults.ip(`route add ${VIP}/32 via ${node.ip()} dev eth0 onlink`, `route del ${VIP}/32`, client);
      set('ipv4.conf.all.arp_ignore', '1');
      // Else the client may know the node's address by being asked.
      takes(node, shell(client, 'cat /sys/class/net/eth0/address').trim(), CLIENT, toClient);
    },
  ],
  [
    'fixed entries in place of proxy_arp',
    () => {
      for (const [pod, veth] of [
        [web, toWeb],
        [client, toClient],
      ] as const) {
        takes(pod, shell(node, `cat /sys/class/net/${veth}/address`).trim(), GATEWAY, 'eth0');
        set(`ipv4.conf.${veth}.proxy_arp`, '0');
      }
    },
  ],
])('%s: what is told is what connections do', async (_, begin) => {
  begin();
  for (const [host, source, ip, at, destination] of [
    [client, CLIENT, WEB, TARGET, `${WEB}:${TARGET}`],
    [client, CLIENT, VIP, 80, `${VIP}:80`],
    [client, CLIENT6, VIP6, 80, `[${VIP6}]:80`],
    [node, 'node', VIP, 80, `${VIP}:80`],
    [node, 'node', VIP6, 80, `[${VIP6}]:80`],
    [web, WEB, VIP, 80, `${VIP}:80`],
  ] as const) {
    for (const { namespace } of [node, web, client]) namespace.run('ip', 'neigh', 'flush', 'all');
    world.run('conntrack', '-F');
    const verdict = (await answers(host, ip, at)) ? 'works' : 'fails';
    const [answer] = await world.askHere([{ destination, source }]);
    expect(answer!.verdict, `${source} to ${destination}: ${answer!.cause}`).toBe(verdict);
  }
});

it.each<[string, () => void]>([
  ['a link that answers nobody', () => set('ipv4.conf.eth0.arp_ignore', '8')],
  ['a fixed entry for the client', () => takes(node, NOBODY, outside.ip(), 'eth0')],
  ['no ARP', () => noArp(node, 'eth0')],
])('a client outside, by %s: does not say that it works', async (_, begin) => {
  begin();
  for (const { namespace } of [node, outside]) namespace.run('ip', 'neigh', 'flush', 'all');
  expect(await answers(outside, node.ip(), NODE_PORT)).toBe(false);
  const answer = await world.ask(`node:${NODE_PORT}`, outside.ip());
  expect(['unknown', 'fails'], answer.cause).toContain(answer.verdict);
});
