import { afterAll, beforeAll, expect, it } from 'vitest';
import { formatIp, parseIp, withPort } from '../../../src/core/index.ts';
import { masqueradeSource, NodeView } from '../../../src/explain/node/index.ts';
import { closing } from '../../../src/netlink/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { type Host, removeAll } from '../lab.ts';
import { createNamespace } from '../namespace.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Which address of the node packets get that are masqueraded, or redirected to it: rules of others ask for it.

const [WEB, LOCAL, WEB6, LOCAL6] = ['10.96.0.10', '10.96.0.11', 'fd00:96::10', 'fd00:96::11'];
const [GATEWAY, GATEWAY6, ELSEWHERE, NOBODYS] = ['10.244.1.1', 'fd00:10:244:1::1', '172.16.5.1', '198.51.100.7'];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;
const NODE6 = node.ip('IPv6');

beforeAll(async () => {
  await node.serve({ port: TARGET });
  await world.begin([
    ...served('shop/web', WEB, [on(node, web.ip())]),
    ...served('shop/local', LOCAL, [on(node, node.ip())]),
    ...served('shop/web6', WEB6, [on(node, web.ip('IPv6'))]),
    ...served('shop/local6', LOCAL6, [on(node, NODE6)]),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const drops = (hook: string, rule: string) =>
  faults.nft(
    `table inet theirs { chain drops { type filter hook ${hook} priority 300; tcp dport ${TARGET} ${rule} drop; } }`,
    'inet theirs',
  );
const inOrder =
  (...begin: (() => void)[]) =>
  () => {
    for (const one of begin) one();
  };
const second = () => faults.ip('addr add 10.244.1.77/24 dev cni0', 'addr del 10.244.1.77/24 dev cni0');
const other = () => faults.ip('addr add 10.244.0.1/16 dev cni0', 'addr del 10.244.0.1/16 dev cni0');
const narrow = () => faults.ip(`addr add ${ELSEWHERE}/32 dev cni0`, `addr del ${ELSEWHERE}/32 dev cni0`);
const route = () =>
  faults.ip(`route add ${web.ip()}/32 dev cni0 src ${node.ip()}`, `route del ${web.ip()}/32 dev cni0`);
const second6 = () =>
  faults.ip('addr add fd00:10:244:1::77/64 dev cni0 nodad', 'addr del fd00:10:244:1::77/64 dev cni0');
const route6 = () =>
  faults.ip(`-6 route add ${web.ip('IPv6')}/128 dev cni0 src ${NODE6}`, `-6 route del ${web.ip('IPv6')}/128 dev cni0`);
const redirects = () =>
  faults.nft(
    `table ip away { chain away { type nat hook prerouting priority -100; ip daddr ${NOBODYS} tcp dport 80 redirect to :${TARGET}; } }`,
    'ip away',
  );

it.each<[string, () => void, Host, string, 'works' | 'fails']>([
  ['the node, by a rule for nobody here', () => drops('input', 'ip saddr 100.64.0.0/10'), node, LOCAL, 'works'],
  ['the node, by its first link', () => drops('input', `ip saddr ${node.ip()}`), node, LOCAL, 'fails'],
  ['the node, by its bridge', () => drops('input', `ip saddr ${GATEWAY}`), node, LOCAL, 'works'],
  ['a pod’s link, by its address', () => drops('postrouting', `ip saddr ${GATEWAY}`), node, WEB, 'fails'],
  [
    'a pod’s link, by a second address of the subnet',
    inOrder(second, () => drops('postrouting', 'ip saddr 10.244.1.77')),
    node,
    WEB,
    'works',
  ],
  [
    'a pod’s link, by a later address of a wider subnet',
    inOrder(other, () => drops('postrouting', 'ip saddr 10.244.0.1')),
    node,
    WEB,
    'works',
  ],
  [
    'a pod’s link, by an address of another subnet',
    inOrder(narrow, () => drops('postrouting', `ip saddr ${ELSEWHERE}`)),
    node,
    WEB,
    'works',
  ],
  [
    'a pod’s link, by its address, though the route has another source',
    inOrder(route, () => drops('postrouting', `ip saddr ${GATEWAY}`)),
    node,
    WEB,
    'fails',
  ],
  [
    'a pod’s link, by the source of the route',
    inOrder(route, () => drops('postrouting', `ip saddr ${node.ip()}`)),
    node,
    WEB,
    'works',
  ],
  ['IPv6: the node, by a rule for nobody here', () => drops('input', 'ip6 saddr 2001:db8::/32'), node, LOCAL6, 'works'],
  ['IPv6: the node, by its own address', () => drops('input', `ip6 saddr ${NODE6}`), node, LOCAL6, 'fails'],
  ['IPv6: the node, by its bridge', () => drops('input', `ip6 saddr ${GATEWAY6}`), node, LOCAL6, 'works'],
  ['IPv6: a pod’s link, by its address', () => drops('postrouting', `ip6 saddr ${GATEWAY6}`), node, WEB6, 'fails'],
  [
    'IPv6: a pod’s link, by its address, though the route has another source',
    inOrder(route6, () => drops('postrouting', `ip6 saddr ${GATEWAY6}`)),
    node,
    WEB6,
    'fails',
  ],
  [
    'IPv6: a pod’s link, by the source of the route',
    inOrder(route6, () => drops('postrouting', `ip6 saddr ${NODE6}`)),
    node,
    WEB6,
    'works',
  ],
  [
    'IPv6: a pod’s link, by the older of two addresses',
    inOrder(second6, () => drops('postrouting', `ip6 saddr ${GATEWAY6}`)),
    node,
    WEB6,
    'works',
  ],
  [
    'IPv6: a pod’s link, by the newer of two addresses',
    inOrder(second6, () => drops('postrouting', 'ip6 saddr fd00:10:244:1::77')),
    node,
    WEB6,
    'fails',
  ],
  [
    'redirected, by the address of the link it came in by',
    inOrder(redirects, () => drops('input', `ip daddr ${GATEWAY}`)),
    client,
    NOBODYS,
    'fails',
  ],
  [
    'redirected, by the address of another link',
    inOrder(redirects, () => drops('input', `ip daddr ${node.ip()}`)),
    client,
    NOBODYS,
    'works',
  ],
])('%s', async (_, begin, from, to, told) => {
  begin();
  world.run('conntrack', '-F');
  const [answer] = await world.askHere([{ destination: withPort(to, 80), source: from === node ? 'node' : from.ip() }]);
  expect(await answers(from, to, 80)).toBe(told === 'works');
  expect(answer!.verdict, answer!.cause).toBe(told);
});

it('where a link has no address, of two links with some the one that was made first gives its own', () => {
  const namespace = createNamespace('masquerade');
  for (const words of [
    'link add first0 index 900 type veth peer first1',
    'link add second0 index 800 type veth peer second1',
    'link add without0 type veth peer without1',
    ...['first0', 'second0', 'without0'].map((link) => `link set ${link} up`),
    'addr add 172.16.5.1/24 dev first0',
    'addr add 172.16.6.1/24 dev second0',
    'route add 198.51.100.0/24 dev without0',
  ])
    namespace.run('ip', ...words.split(' '));
  // The kernel asks itself the same for the source of what it sends there.
  expect(namespace.run('ip', 'route', 'get', '198.51.100.7')).toContain('src 172.16.5.1');
  const told = inNetns(namespace.path, () =>
    closing(NodeView.open(), (view) => {
      const out = view.links.find(({ name }) => name === 'without0')!.index;
      return masqueradeSource(out, parseIp(NOBODYS), view);
    }),
  );
  expect(told && formatIp(told)).toBe('172.16.5.1');
});
