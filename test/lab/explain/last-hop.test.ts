import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, type Pod, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults, vethOf } from './faults.ts';

// What pods and node know each other by on the last links, and what is not routed at all: frames between pods of one bridge.

const VIP = '10.96.0.10';
/** Of a Service with an endpoint on the other node. */
const FAR = '10.96.0.11';
const NODE_PORT = 30_080;
const PROCESS = 9090;
/** External addresses in the subnets of the pods. */
const NEAR = { IPv4: '10.244.1.200', IPv6: 'fd00:10:244:1::200' } as const;
const NOBODY = '02:00:00:00:00:01';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, other, web, far, client, outside } = world;
const [WEB, CLIENT, GATEWAY] = [web.ip(), client.ip(), '10.244.1.1'];

beforeAll(() => {
  const ports = { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] } as const;
  return world.begin([
    ...served('shop/web', VIP, [on(node, WEB)], ports),
    ...served('shop/far', FAR, [on(other, far.ip())]),
    ...served('shop/near', '10.96.0.12', [on(node, WEB)], { externalIPs: [NEAR.IPv4] }),
    ...served('shop/near6', 'fd00:96::12', [on(node, web.ip('IPv6'))], { externalIPs: [NEAR.IPv6] }),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const rule = (words: string) => faults.ip(`rule add ${words} prio 100`, 'rule del prio 100');
const route = (words: string) => faults.ip(`route add ${words}`, `route del ${words}`);
const noBridgeRules = () => faults.sysctl('net.bridge.bridge-nf-call-iptables', '0');
const noArp = (pod: Pod) => faults.ip('link set eth0 arp off', 'link set eth0 arp on', pod);
const port = (option: string, change: string, back: string, pod = web) => {
  const set = `link set dev ${vethOf(node, pod)} ${option}`;
  faults.run('bridge', `${set} ${change}`, `${set} ${back}`);
};
const takes = (pod: Pod, mac: string, ip: string) =>
  faults.ip(`neigh replace ${ip} lladdr ${mac} dev eth0 nud permanent`, `neigh del ${ip} dev eth0`, pod);

const macOf = (host: Host, device = 'eth0') => host.namespace.run('cat', `/sys/class/net/${device}/address`).trim();
/** Enters a MAC address in the bridge's forwarding database. @param at the port or `cni0`, and whose table: `master` or `self` */
const entered = (mac: string, at: string, kind: string) =>
  faults.run('bridge', `fdb replace ${mac} dev ${at} ${kind}`, `fdb del ${mac} dev ${at}`);
/** The bridge's own, of which a pod's port is told instead. */
const bridgeIsAt = (pod: Pod) => {
  const mac = macOf(node, 'cni0');
  faults.undo(() => void node.namespace.run('bridge', 'fdb', 'add', mac, 'dev', 'cni0', 'self', 'permanent'));
  faults.run(
    'bridge',
    `fdb replace ${mac} dev ${vethOf(node, pod)} master static`,
    `fdb del ${mac} dev ${vethOf(node, pod)} master`,
  );
};
const dropsArp = 'table arp foreign { chain drops { type filter hook input priority 0; drop; } }';
const keepsNoMac = (pod: Pod) => {
  const device = vethOf(node, pod);
  faults.run('bridge', `link set dev ${device} learning off flood off`, `link set dev ${device} learning on flood on`);
  node.namespace.run('bridge', 'fdb', 'flush', 'dev', device, 'master', 'dynamic');
};

/** Flows and neighbours are forgotten before each try. */
async function works(host: Host, ip: string, at: number): Promise<boolean> {
  for (const { namespace } of [node, web, client, outside]) namespace.run('ip', 'neigh', 'flush', 'all');
  world.run('conntrack', '-F');
  return answers(host, ip, at);
}

it.each<[string, () => void]>([
  ['nothing', () => {}],
  ['a policy rule for what comes in by the bridge', () => rule('iif cni0 blackhole')],
  ['a policy rule for the client', () => rule(`from ${CLIENT} blackhole`)],
  [
    'a locked port whose pod is entered for it',
    () => {
      entered(macOf(web), `${vethOf(node, web)} master`, 'static');
      port('locked', 'on', 'off');
    },
  ],
  [
    'the same without rules in the bridge',
    () => {
      noBridgeRules();
      rule(`from ${CLIENT} blackhole`);
    },
  ],
  ['a prohibited route', () => route(`prohibit ${WEB}/32`)],
  [
    'a bridge without an address',
    () => faults.ip(`address del ${GATEWAY}/24 dev cni0`, `address add ${GATEWAY}/24 dev cni0`),
  ],
  ['no ARP in the endpoint', () => noArp(web)],
  ['no ARP in the client', () => noArp(client)],
  ['an endpoint that answers no ARP', () => faults.sysctl('net.ipv4.conf.eth0.arp_ignore', '8', web)],
  ['a node that answers no ARP', () => faults.sysctl('net.ipv4.conf.all.arp_ignore', '8')],
  [
    'an endpoint with a value of arp_ignore that means nothing',
    () => faults.sysctl('net.ipv4.conf.eth0.arp_ignore', '9', web),
  ],
  [
    'a gateway on another link, where the node answers on that link alone',
    () => {
      faults.ip(`address add ${GATEWAY}/32 dev lo`, `address del ${GATEWAY}/32 dev lo`);
      faults.ip(`address del ${GATEWAY}/24 dev cni0`, `address add ${GATEWAY}/24 dev cni0`);
      faults.ip(`route add 10.244.1.0/24 dev cni0 src ${GATEWAY}`, 'route del 10.244.1.0/24 dev cni0');
      faults.sysctl('net.ipv4.conf.all.arp_ignore', '1');
    },
  ],
  [
    'links that forward although the node does not',
    () => {
      faults.sysctl('net.ipv4.ip_forward', '0');
      for (const link of ['cni0', 'eth0']) faults.sysctl(`net.ipv4.conf.${link}.forwarding`, '1');
    },
  ],
  ['a client that takes nobody for the endpoint', () => takes(client, NOBODY, WEB)],
  ['an endpoint that takes nobody for the client', () => takes(web, NOBODY, CLIENT)],
  [
    'a node that takes nobody for the endpoint',
    () => faults.ip(`neigh replace ${WEB} lladdr ${NOBODY} dev cni0 nud permanent`, `neigh del ${WEB} dev cni0`),
  ],
  [
    'an endpoint that takes nobody for the node',
    () => {
      noBridgeRules();
      takes(web, NOBODY, GATEWAY);
    },
  ],
  ['an endpoint that the bridge takes for itself', () => entered(macOf(web), 'cni0 self', 'permanent')],
  ['a client that the bridge takes for itself', () => entered(macOf(client), 'cni0 self', 'permanent')],
  ['an endpoint local by its own port', () => entered(macOf(web), `${vethOf(node, web)} master`, 'permanent')],
  ['a client local by its own port', () => entered(macOf(client), `${vethOf(node, client)} master`, 'permanent')],
  ['an endpoint fixed at its own port', () => entered(macOf(web), `${vethOf(node, web)} master`, 'static')],
  ['an endpoint stuck to another port', () => entered(macOf(web), `${vethOf(node, client)} master`, 'static sticky')],
  [
    'an endpoint fixed at another port, by a port that does not learn',
    () => {
      port('learning', 'off', 'on');
      entered(macOf(web), `${vethOf(node, client)} master`, 'static');
    },
  ],
  ['an endpoint by a port that neither learns nor floods', () => keepsNoMac(web)],
  ['a client by a port that neither learns nor floods', () => keepsNoMac(client)],
  ['a port that does not learn', () => port('learning', 'off', 'on')],
  ['a bridge whose own address is at the port of the endpoint', () => bridgeIsAt(web)],
  ['a bridge without ARP', () => faults.ip('link set cni0 arp off', 'link set cni0 arp on')],
])('%s: what is told is what connections do', async (_, begin) => {
  begin();
  for (const [host, source, ip, at, destination] of [
    [client, CLIENT, WEB, TARGET, `${WEB}:${TARGET}`],
    [client, CLIENT, VIP, 80, `${VIP}:80`],
    [node, 'node', VIP, 80, `${VIP}:80`],
    [outside, outside.ip(), node.ip(), NODE_PORT, `node:${NODE_PORT}`],
  ] as const) {
    const verdict = (await works(host, ip, at)) ? 'works' : 'fails';
    const [answer] = await world.askHere([{ destination, source }]);
    // Whether a client outside has asked already, nobody here knows.
    const isTold = host !== outside || !answer!.cause.includes('who asks on eth0');
    expect(answer!.verdict, `${source} to ${destination}: ${answer!.cause}`).toBe(isTold ? verdict : 'unknown');
    if (!isTold) expect(verdict).toBe('fails');
  }
});

it.each<[string, string, () => void]>([
  ['a locked port', `${WEB}:${TARGET}`, () => port('locked', 'on', 'off')],
  ['a port that gets no frames to all', `${WEB}:${TARGET}`, () => port('bcast_flood', 'off', 'on')],
  ['a client whose port gets no frames to all', `${VIP}:80`, () => port('bcast_flood', 'off', 'on', client)],
  [
    'an endpoint fixed at another port until it is heard',
    `${WEB}:${TARGET}`,
    () => entered(macOf(web), `${vethOf(node, client)} master`, 'static'),
  ],
  [
    'a client that sends to the Service as to a neighbour',
    `${VIP}:80`,
    () => faults.ip(`route add ${VIP}/32 dev eth0`, `route del ${VIP}/32`, client),
  ],
  [
    'a filter of tc that redirects what the client sends',
    `${VIP}:80`,
    () => {
      const device = vethOf(node, client);
      faults.run('tc', `qdisc add dev ${device} clsact`, `qdisc del dev ${device} clsact`);
      const redirect = 'protocol all u32 match u32 0 0 action mirred egress redirect dev lo';
      node.namespace.run('tc', ...`filter add dev ${device} ingress ${redirect}`.split(' '));
    },
  ],
  ['rules of the node for ARP', `${VIP}:80`, () => faults.nft(dropsArp, 'arp foreign')],
  ['rules of the client for ARP', `${VIP}:80`, () => faults.nft(dropsArp, 'arp foreign', client)],
  ['rules of the endpoint for ARP', `${VIP}:80`, () => faults.nft(dropsArp, 'arp foreign', web)],
  [
    'a second link of the endpoint, which answers for the first',
    `${VIP}:80`,
    () => {
      faults.ip('link add second0 type veth peer name second1', 'link del second0');
      for (const words of ['second0 master cni0 up', `second1 netns ${web.namespace.name}`])
        node.namespace.run('ip', 'link', 'set', ...words.split(' '));
      web.namespace.run('ip', 'link', 'set', 'second1', 'up');
      const mac = macOf(web, 'second1');
      faults.ip(`neigh replace ${WEB} lladdr ${mac} dev cni0 nud reachable`, `neigh del ${WEB} dev cni0`);
    },
  ],
  [
    'a bridge whose own address is elsewhere, while this node knows the endpoint',
    `${VIP}:80`,
    () => {
      faults.ip(`neigh replace ${WEB} lladdr ${macOf(web)} dev cni0 nud reachable`, `neigh del ${WEB} dev cni0`);
      bridgeIsAt(web);
    },
  ],
  ['an entry that nobody needs where rules see the frames', `${VIP}:80`, () => takes(client, NOBODY, GATEWAY)],
])('does not say that it works, nor that it fails: %s', async (_, destination, begin) => {
  begin();
  const [answer] = await world.askHere([{ destination, source: CLIENT }]);
  expect(answer!.verdict, answer!.cause).toBe('unknown');
});

it.each<[string, () => void]>([
  ['with no ARP', () => noArp(client)],
  [
    'with an entry for nobody',
    () => {
      noBridgeRules();
      takes(client, NOBODY, GATEWAY);
    },
  ],
  ['that the bridge takes for itself', () => entered(macOf(client), 'cni0 self', 'permanent')],
  ['of a bridge whose own address is elsewhere', () => bridgeIsAt(client)],
])('a client %s reaches endpoints of other nodes no more either', async (_, begin) => {
  begin();
  const [answer] = await world.askHere([{ destination: `${FAR}:80`, source: CLIENT }]);
  expect(answer, answer!.cause).toMatchObject({ verdict: 'fails', code: 'neighbour' });
  expect(await works(client, FAR, 80)).toBe(false);
});

it.each(['IPv4', 'IPv6'] as const)(
  'a pod asks on its link for the address of a Service in its own subnet, and who answers is not known, %s',
  async (family) => {
    const ip = NEAR[family];
    const ask = () => world.ask(family === 'IPv6' ? `[${ip}]:80` : `${ip}:80`, client.ip(family));
    expect(await ask()).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining(`who has ${ip}`) });
    expect(await works(client, ip, 80)).toBe(false);
    takes(client, macOf(node, 'cni0'), ip);
    expect(await ask()).toMatchObject({ verdict: 'works' });
    expect(await answers(client, ip, 80)).toBe(true);
  },
);

it('a client outside may get no answer who has an address of the node (arp_filter)', async () => {
  faults.sysctl('net.ipv4.conf.all.arp_filter', '1');
  expect(await world.ask(`node:${NODE_PORT}`, outside.ip())).toMatchObject({ verdict: 'works' });
  expect(await works(outside, node.ip(), NODE_PORT)).toBe(true);
  faults.ip(`route add ${outside.ip()}/32 dev cni0 table 90`, 'route flush table 90');
  rule(`from ${node.ip()} to ${outside.ip()} lookup 90`);
  const cause = expect.stringContaining('arp_filter');
  expect(await world.ask(`node:${NODE_PORT}`, outside.ip())).toMatchObject({ verdict: 'unknown', cause });
  expect(await works(outside, node.ip(), NODE_PORT)).toBe(false);
});

it('who asks for an address of the node may get no answer, by where it is (arp_ignore)', async () => {
  const [OF_LINK, OF_HOST] = ['10.7.0.1', '10.8.0.1'];
  faults.ip(`address add ${OF_LINK}/24 dev eth0`, `address del ${OF_LINK}/24 dev eth0`);
  faults.ip(`address add ${OF_HOST}/32 dev lo scope host`, `address del ${OF_HOST}/32 dev lo`);
  faults.ip(`route add ${OF_LINK} dev eth0`, `route del ${OF_LINK} dev eth0`, outside);
  faults.ip(`route add ${OF_HOST} dev eth0`, `route del ${OF_HOST} dev eth0`, client);
  await node.serve({ port: PROCESS });
  for (const [value, byOutside, byClient] of [
    ['0', 'works', 'works'],
    ['1', 'works', 'fails'],
    ['2', 'unknown', 'fails'],
    ['3', 'works', 'fails'],
  ] as const) {
    faults.sysctl('net.ipv4.conf.all.arp_ignore', value);
    for (const [host, ip, told] of [
      [outside, OF_LINK, byOutside],
      [client, OF_HOST, byClient],
    ] as const) {
      const [answer] = await world.askHere([{ destination: `${ip}:${PROCESS}`, source: host.ip() }]);
      expect(answer!.verdict, `${value}: ${answer!.cause}`).toBe(told);
      expect(await works(host, ip, PROCESS), `${value} ${host.name}`).toBe(told === 'works');
    }
  }
});

it('an endpoint may not answer who has its address, where its way to who asks is another (arp_filter)', async () => {
  faults.sysctl('net.ipv4.conf.eth0.arp_filter', '1', web);
  const works = async () => (await world.askHere([{ destination: VIP, source: CLIENT }]))[0]!;
  expect((await works()).verdict).toBe('works');
  faults.ip('link add side type veth peer name aside', 'link del side', web);
  for (const link of ['side', 'aside']) web.namespace.run('ip', 'link', 'set', link, 'up');
  web.namespace.run('ip', 'route', 'add', `${GATEWAY}/32`, 'dev', 'side');
  node.namespace.run('ip', 'neigh', 'flush', 'dev', 'cni0');
  const answer = await works();
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('arp_filter') });
  expect(await answers(client, VIP)).toBe(false);
});

it.each([
  ['a client', client],
  ['an endpoint', web],
] as const)('%s that asks for nobody on its link may not find whom it sends to', async (_, pod) => {
  faults.sysctl('net.ipv4.neigh.eth0.mcast_solicit', '0', pod);
  for (const { namespace } of [node, client, web]) namespace.run('ip', 'neigh', 'flush', 'all');
  const [answer] = await world.askHere([{ destination: VIP, source: CLIENT }]);
  expect(answer, answer!.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('mcast_solicit') });
  expect(await answers(client, VIP)).toBe(false);
});

it('whom packets get to whose address another pod of the link has too, on another of its links, is not known', async () => {
  const said = async () => (await world.askHere([{ destination: VIP, source: CLIENT }]))[0]!;
  for (const [ip, pod, owner, link] of [
    [WEB, client, web, 'eth0'],
    [GATEWAY, web, node, 'cni0'],
  ] as const) {
    faults.ip(`address add ${ip}/32 dev lo`, `address del ${ip}/32 dev lo`, pod);
    for (const { namespace } of [node, client, web]) namespace.run('ip', 'neigh', 'flush', 'all');
    expect(await said()).toMatchObject({
      verdict: 'unknown',
      cause: expect.stringContaining(`has the address ${ip} too`),
    });
    // Who answers first is believed: it is not left to chance that this is the other one.
    faults.sysctl(`net.ipv4.conf.${link}.arp_ignore`, '8', owner);
    for (const { namespace } of [node, client, web]) namespace.run('ip', 'neigh', 'flush', 'all');
    expect(await answers(client, VIP)).toBe(false);
    faults.mend();
  }
  for (const { namespace } of [node, client, web]) namespace.run('ip', 'neigh', 'flush', 'all');
  expect((await said()).verdict).toBe('works');
});

it('a pod gets no answer who has the address of its gateway (arp_filter)', async () => {
  faults.sysctl('net.ipv4.conf.all.arp_filter', '1');
  expect(await works(client, VIP, 80)).toBe(true);
  route(`${CLIENT}/32 dev lo`);
  for (const { namespace } of [node, client]) namespace.run('ip', 'neigh', 'flush', 'all');
  const answer = await world.ask(`${VIP}:80`, CLIENT);
  expect(answer, answer.cause).toMatchObject({ verdict: 'fails', code: 'neighbour' });
  expect(await works(client, VIP, 80)).toBe(false);
});

it('a link of a pod that lies on a link of the node reaches everybody but the node', async () => {
  const ip = outside.ip().replace(/\d+$/, '222');
  node.namespace.run('ip', 'link', 'add', 'upon0', 'link', 'eth0', 'type', 'macvlan', 'mode', 'bridge');
  node.namespace.run('ip', 'link', 'set', 'upon0', 'netns', client.namespace.name);
  faults.undo(() => void client.namespace.run('ip', 'link', 'del', 'upon0'));
  client.namespace.run('ip', 'link', 'set', 'upon0', 'up');
  client.namespace.run('ip', 'address', 'add', `${ip}/24`, 'dev', 'upon0');
  expect(await answers(client, node.ip(), NODE_PORT)).toBe(false);
  const answer = await world.ask(`node:${NODE_PORT}`, ip);
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('macvlan') });
});
