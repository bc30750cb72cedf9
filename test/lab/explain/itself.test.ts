import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// What a pod or the node sends to an address of its own, which goes by its loopback link.

const [WEB, LOCAL] = ['10.96.0.10', '10.96.0.11'];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client } = world;

beforeAll(async () => {
  await node.serve({ port: TARGET });
  await web.serve({ port: 80 });
  await world.begin([
    ...served('shop/web', WEB, [on(node, web.ip())]),
    ...served('shop/local', LOCAL, [on(node, node.ip())]),
    ...served('shop/named', '10.96.0.12', [on(node, web.ip())], { externalIPs: [client.ip()] }),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const down = (host: Host) => faults.ip('link set lo down', 'link set lo up', host);
const add = (address: string) => faults.ip(`addr add ${address}`, `addr del ${address}`, web);
const dropAll = () =>
  faults.nft(
    'table inet theirs { chain sent { type filter hook postrouting priority 300; oifname "cni0" drop; } }',
    'inet theirs',
  );

const sentAs = () =>
  faults.nft(
    'table ip theirs { chain sent { type nat hook postrouting priority 90; snat to 172.16.77.7; } }',
    'ip theirs',
  );

const range = () => faults.ip('addr add 172.30.0.1/24 dev lo', 'addr del 172.30.0.1/24 dev lo', node);

it.each<[string, () => void, Host, string, number, boolean]>([
  ['a pod, with nothing in its way', () => {}, web, web.ip(), TARGET, true],
  ['a pod, whatever rules of the node drop', dropAll, web, web.ip(), TARGET, true],
  [
    'a pod, whose bridge is down',
    () => faults.ip('link set cni0 down', 'link set cni0 up'),
    web,
    web.ip(),
    TARGET,
    true,
  ],
  ['a pod, where lo is down', () => down(web), web, web.ip(), TARGET, false],
  ['a pod, where nobody listens', () => {}, web, web.ip(), 8099, false],
  ['a pod that nobody listens in, at its address, which a Service has too', () => {}, client, client.ip(), 80, false],
  ['a pod at its second address', () => add('10.244.1.150/24 dev eth0'), web, '10.244.1.150', TARGET, true],
  ['a pod at loopback', () => {}, web, '127.0.0.1', TARGET, true],
  [
    'a pod by its Service, whose address it has in two subnets',
    () => add(`${web.ip()}/32 dev eth0`),
    web,
    WEB,
    80,
    true,
  ],
  [
    'a client, to a pod whose address it has in two subnets',
    () => add(`${web.ip()}/32 dev eth0`),
    client,
    WEB,
    80,
    true,
  ],
  ['a pod that has the address of its Service', () => add(`${WEB}/32 dev lo`), web, WEB, 80, true],
  ['a pod by its Service, which leaves it', () => down(web), web, WEB, 80, true],
  ['the node', () => {}, node, node.ip(), TARGET, true],
  ['the node at another address of loopback', () => {}, node, '127.0.0.5', TARGET, true],
  ['the node at an address in the range of one of lo', range, node, '172.30.0.9', TARGET, true],
  ['the node, where lo is down', () => down(node), node, node.ip(), TARGET, false],
  ['the node, as somebody else by rules', sentAs, node, node.ip(), TARGET, true],
  ['the node by a Service, as somebody else by rules', sentAs, node, LOCAL, 80, true],
  ['the node by a Service, where lo is down', () => down(node), node, LOCAL, 80, false],
  ['the node to a pod, where lo is down', () => down(node), node, WEB, 80, true],
  ['a pod to the node, where lo is down', () => down(node), client, LOCAL, 80, true],
])('%s', async (_, begin, from, ip, port, works) => {
  begin();
  const source = from === node ? 'node' : from.ip();
  const [answer] = await world.askHere([{ destination: `${ip}:${port}`, source }]);
  expect(answer!.verdict, answer!.cause).toBe(works ? 'works' : 'fails');
  expect(await answers(from, ip, port)).toBe(works);
});

it('of a pod whose address this node takes itself it cannot be told who answers', async () => {
  faults.ip(`route add local ${web.ip()} dev lo`, `route del local ${web.ip()} dev lo`);
  const cause = expect.stringContaining('by a local route');
  expect(await world.ask(WEB, client.ip())).toMatchObject({ verdict: 'unknown', cause });
  // A process of the node, which listens at the same port.
  expect(await answers(client, WEB)).toBe(true);
});
