import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CauseCode } from '../../../src/explain/index.ts';
import { type Pod, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults, vethOf } from './faults.ts';

// Packets that are led elsewhere or stopped beside the rules: by policy routing, by marks, at ports of the bridge, on links, and by the
// routes of the pods themselves. Nothing is answered, and no verdict may say that it works.

const VIP = '10.96.0.10';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;
const [WEB, CLIENT] = [web.ip(), client.ip()];

beforeAll(() => world.begin(served('shop/web', VIP, [on(node, WEB)])), 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

interface Diversion {
  readonly verdict: 'fails' | 'unknown';
  readonly code: CauseCode;
  /** @default the client */
  readonly from?: 'node';
  readonly begin: () => void;
}

const rule = (words: string) => faults.ip(`rule add ${words} prio 100`, 'rule del prio 100');
const port = (pod: Pod, option: string, on: string, off: string) =>
  faults.run(
    'bridge',
    `link set dev ${vethOf(node, pod)} ${option} ${on}`,
    `link set dev ${vethOf(node, pod)} ${option} ${off}`,
  );
const mark = (of: string) =>
  faults.nft(
    `table ip marks { chain seen { type filter hook prerouting priority -150; ${of} meta mark set 0x77; } }`,
    'ip marks',
  );
/** Its answers come to the node, which sends them on. */
const masqueradeClient = () =>
  faults.nft(
    `table ip others { chain after { type nat hook postrouting priority 90; ip saddr ${CLIENT} masquerade; } }`,
    'ip others',
  );
const ingress = (text: string) => `type filter hook ${text} priority 0; tcp dport { 80, ${TARGET} } drop`;

const DIVERSIONS: Readonly<Record<string, Diversion>> = {
  'a policy rule for a port': {
    verdict: 'fails',
    code: 'no-peer-route',
    begin: () => rule(`to ${WEB} ipproto tcp dport ${TARGET} blackhole`),
  },
  'a policy rule for a mark': {
    verdict: 'fails',
    code: 'no-peer-route',
    begin: () => {
      rule('fwmark 0x77 blackhole');
      mark('tcp dport 80');
    },
  },
  'a route for a mark': {
    verdict: 'fails',
    code: 'no-peer-route',
    begin: () => {
      faults.ip('route add default dev eth0 table 77', 'route flush table 77');
      rule('fwmark 0x77 lookup 77');
      mark('tcp dport 80');
    },
  },
  'a policy rule for the mark of packets after the first': {
    verdict: 'fails',
    code: 'no-peer-route',
    begin: () => {
      rule('fwmark 0x77 blackhole');
      mark('tcp dport 80 tcp flags & (syn | ack) == ack');
    },
  },
  'a route for the mark of packets after the first': {
    verdict: 'fails',
    code: 'no-peer-route',
    begin: () => {
      faults.ip('route add default dev eth0 table 77', 'route flush table 77');
      rule('fwmark 0x77 lookup 77');
      mark('tcp dport 80 tcp flags & (syn | ack) == ack');
    },
  },
  'a policy rule for the mark of answers': {
    verdict: 'fails',
    code: 'way-back',
    begin: () => {
      masqueradeClient();
      rule('fwmark 0x77 blackhole');
      mark(`tcp sport ${TARGET}`);
    },
  },
  'a route for the mark of answers': {
    verdict: 'fails',
    code: 'way-back',
    begin: () => {
      masqueradeClient();
      faults.ip('route add default dev eth0 table 77', 'route flush table 77');
      rule('fwmark 0x77 lookup 77');
      mark(`tcp sport ${TARGET}`);
    },
  },
  'a route for answers': {
    verdict: 'fails',
    code: 'way-back',
    begin: () => {
      masqueradeClient();
      faults.ip('route add default dev eth0 table 77', 'route flush table 77');
      rule(`from ${WEB} lookup 77`);
    },
  },
  'packets after the first that are not tracked': {
    verdict: 'fails',
    code: 'foreign-drop',
    begin: () => {
      const seen = 'type filter hook prerouting priority -300; tcp dport 80 tcp flags & (syn | ack) == ack notrack';
      faults.nft(`table ip others { chain seen { ${seen}; } }`, 'ip others');
    },
  },
  'a pair that is plugged into nothing': {
    verdict: 'fails',
    code: 'link-down',
    begin: () => faults.ip(`link set ${vethOf(node, web)} nomaster`, `link set ${vethOf(node, web)} master cni0`),
  },
  'isolated ports': {
    verdict: 'fails',
    code: 'link-down',
    begin: () => {
      port(web, 'isolated', 'on', 'off');
      port(client, 'isolated', 'on', 'off');
    },
  },
  "the endpoint's port is blocked": {
    verdict: 'fails',
    code: 'link-down',
    begin: () => port(web, 'state', '0', '3'),
  },
  "the client's port is blocked": {
    verdict: 'fails',
    code: 'link-down',
    begin: () => port(client, 'state', '0', '3'),
  },
  // As of a guest that libvirt has just plugged into its default network, whose bridge has a spanning tree.
  "the endpoint's port is about to let frames pass": {
    verdict: 'unknown',
    code: 'cannot-tell',
    begin: () => port(web, 'state', '1', '3'),
  },
  "the client's port is about to let frames pass": {
    verdict: 'unknown',
    code: 'cannot-tell',
    begin: () => port(client, 'state', '2', '3'),
  },
  'the endpoint has no route back': {
    verdict: 'fails',
    code: 'way-back',
    begin: () => faults.ip(`route add blackhole ${CLIENT}/32`, `route del blackhole ${CLIENT}/32`, web),
  },
  'the endpoint has no route back to its node': {
    verdict: 'fails',
    code: 'way-back',
    from: 'node',
    begin: () => faults.ip('rule add from all blackhole prio 50', 'rule del prio 50', web),
  },
  'the client has the address itself': {
    verdict: 'fails',
    code: 'pod-route',
    begin: () => faults.ip(`address add ${VIP}/32 dev lo`, `address del ${VIP}/32 dev lo`, client),
  },
  'a chain on the link of the client': {
    verdict: 'unknown',
    code: 'cannot-tell',
    begin: () =>
      faults.nft(
        `table netdev others { chain in { ${ingress(`ingress device "${vethOf(node, client)}"`)}; } }`,
        'netdev others',
      ),
  },
  'a chain of inet on the link of the client': {
    verdict: 'unknown',
    code: 'cannot-tell',
    begin: () =>
      faults.nft(
        `table inet others { chain in { ${ingress(`ingress device "${vethOf(node, client)}"`)}; } }`,
        'inet others',
      ),
  },
  'a chain of inet on the link of the client, of which the policy alone drops': {
    verdict: 'unknown',
    code: 'cannot-tell',
    begin: () => {
      const seen = `type filter hook ingress device "${vethOf(node, client)}" priority 0; policy drop; tcp dport 22 accept`;
      faults.nft(`table inet others { chain in { ${seen}; } }`, 'inet others');
    },
  },
  'a chain on the link to the endpoint': {
    verdict: 'unknown',
    code: 'cannot-tell',
    from: 'node',
    begin: () =>
      faults.nft(
        `table netdev others { chain out { ${ingress(`egress device "${vethOf(node, web)}"`)}; } }`,
        'netdev others',
      ),
  },
  'a chain in bridges': {
    verdict: 'unknown',
    code: 'cannot-tell',
    begin: () => faults.nft(`table bridge others { chain seen { ${ingress('forward')}; } }`, 'bridge others'),
  },
  'a chain in bridges that leads to one that drops': {
    verdict: 'unknown',
    code: 'cannot-tell',
    begin: () => {
      const seen = 'type filter hook forward priority -200; meta l4proto tcp goto refuse';
      faults.nft(`table bridge others { chain refuse { drop; }\nchain seen { ${seen}; } }`, 'bridge others');
    },
  },
  'a chain on the link in the endpoint': {
    verdict: 'unknown',
    code: 'cannot-tell',
    begin: () => {
      faults.nft(`table netdev others { chain in { ${ingress('ingress device "eth0"')}; } }`, 'netdev others', web);
    },
  },
};

it.each(Object.entries(DIVERSIONS))('%s', async (_, { verdict, code, from, begin }) => {
  const ask = async () => {
    const [answer] = await world.askHere([{ destination: `${VIP}:80`, source: from ?? CLIENT }]);
    return answer!;
  };
  const host = from === 'node' ? node : client;
  begin();
  const answer = await ask();
  expect(answer, answer.cause).toMatchObject({ verdict, code });
  expect(await answers(host, VIP)).toBe(false);
  faults.mend();
  const mended = await ask();
  expect(mended.verdict, mended.cause).toBe('works');
});

const IN_NOBODYS_WAY: Readonly<Record<string, () => void>> = {
  'a refusal of routes for answers between pods of one bridge, which are not routed': () =>
    rule(`from ${WEB} blackhole`),
  'isolated ports, where the node sends on what it has masqueraded': () => {
    faults.sysctl('net.bridge.bridge-nf-call-iptables', '0');
    port(web, 'isolated', 'on', 'off');
    port(client, 'isolated', 'on', 'off');
    masqueradeClient();
  },
  'rules that let pass what was answered, and nothing but that and what is new': () => {
    const seen = 'type filter hook forward priority 10; policy drop; ct state new accept; ct status seen-reply accept';
    faults.nft(`table ip others { chain seen { ${seen}; } }`, 'ip others');
  },
  'no rules in bridges but in this one': () => {
    faults.sysctl('net.bridge.bridge-nf-call-iptables', '0');
    const show = 'link set cni0 type bridge nf_call_iptables';
    faults.ip(`${show} 1`, `${show} 0`);
  },
  'chains in bridges that let all through, as ebtables leaves them for firewalld': () => {
    const passing = 'chain direct { ether type arp counter accept; }';
    const seen = 'type filter hook forward priority -200; meta l4proto tcp counter jump direct; ether type ip6 return';
    faults.nft(`table bridge others { ${passing}\nchain seen { ${seen}; } }`, 'bridge others');
  },
  'chains on links that only count and log': () => {
    const [from, to] = [vethOf(node, client), vethOf(node, web)];
    const seen = (hook: string, link: string) => `type filter hook ${hook} device "${link}" priority 0; counter`;
    const rules = `chain in { ${seen('ingress', from)}; tcp dport 80 log prefix "seen " accept; }\nchain out { ${seen('egress', to)}; }`;
    faults.nft(`table netdev others { ${rules} }`, 'netdev others');
    faults.nft('table arp others { chain in { type filter hook input priority 0; counter; } }', 'arp others');
  },
  'a chain on a link whose table sleeps': () => {
    const drop = ingress(`ingress device "${vethOf(node, client)}"`);
    faults.nft(`table netdev others { flags dormant; chain in { ${drop}; } }`, 'netdev others');
  },
  'a chain in bridges whose table sleeps': () =>
    faults.nft(`table bridge others { flags dormant; chain seen { ${ingress('forward')}; } }`, 'bridge others'),
  'rules in the endpoint whose table sleeps': () => {
    const drop = 'type filter hook input priority 0; drop';
    faults.nft(`table ip others { flags dormant; chain in { ${drop}; } }`, 'ip others', web);
  },
};

const NO_BRIDGE_RULES = () => faults.sysctl('net.bridge.bridge-nf-call-iptables', '0');
/** The node reaches the pod by a link that is plugged into the bridge, as one of a VLAN is. */
const plugIn = () => {
  faults.ip('link add gw0 type veth peer name gw1', 'link del gw0');
  for (const change of ['gw1 master cni0 up', 'gw0 up']) world.run('ip', 'link', 'set', ...change.split(' '));
  faults.ip(`route add ${WEB}/32 dev gw0`, `route del ${WEB}/32 dev gw0`);
};

it.each([
  { by: 'bridge', rules: 'with', begins: [] },
  { by: 'bridge', rules: 'without', begins: [NO_BRIDGE_RULES] },
  { by: 'link above the bridge', rules: 'with', begins: [plugIn] },
  { by: 'link above the bridge', rules: 'without', begins: [plugIn, NO_BRIDGE_RULES] },
])('by a $by $rules rules in the bridge: what is told is what connections do', async ({ begins }) => {
  for (const begin of begins) begin();
  for (const host of [client, node]) {
    for (const [ip, port] of [
      [VIP, 80],
      [WEB, TARGET],
    ] as const) {
      world.run('conntrack', '-F');
      const source = host === node ? 'node' : CLIENT;
      const [answer] = await world.askHere([{ destination: `${ip}:${port}`, source }]);
      const works = await answers(host, ip, port);
      expect(answer!.verdict, `${source} to ${ip}: ${answer!.cause}`).toBe(works ? 'works' : 'fails');
    }
  }
});

it.each(Object.entries(IN_NOBODYS_WAY))('is in nobody’s way: %s', async (_, begin) => {
  begin();
  const [answer] = await world.askHere([{ destination: `${VIP}:80`, source: CLIENT }]);
  expect(answer!.verdict, answer!.cause).toBe('works');
  expect(await answers(client, VIP)).toBe(true);
  faults.mend();
});
