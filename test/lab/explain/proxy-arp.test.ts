import { afterAll, beforeAll, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults, vethOf } from './faults.ts';

// Ports of the bridge with `proxy_arp`, which get nothing that is flooded.

const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;
const [VIP, VIP6, NODE_PORT] = ['10.96.0.10', 'fd00:96::10', 30_080];

beforeAll(async () => {
  const ports = { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] } as const;
  await world.begin([
    ...served('shop/web', VIP, [on(node, web.ip())], ports),
    ...served('shop/web6', VIP6, [on(node, web.ip('IPv6'))]),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const QUESTIONS = [
  [client, client.ip(), VIP, 80],
  [client, client.ip(), web.ip(), TARGET],
  [node, 'node', VIP, 80],
  [outside, outside.ip(), node.ip(), NODE_PORT],
  [client, client.ip('IPv6'), VIP6, 80],
  [client, client.ip('IPv6'), web.ip('IPv6'), TARGET],
  [node, 'node', VIP6, 80],
] as const;

/** Nobody knows anybody's MAC address. */
function forget(): void {
  for (const host of [node, web, client]) host.namespace.run('sh', '-c', 'ip neigh flush all; ip -6 neigh flush all');
  world.run('sh', '-c', 'conntrack -F 2>/dev/null');
}

function setProxyArp(veth: string): void {
  const set = `link set dev ${veth} type bridge_slave proxy_arp`;
  faults.ip(`${set} on`, `${set} off`);
}

it.each(QUESTIONS)('nobody finds an endpoint behind one who does not know it', async (from, source, ip, port) => {
  const destination = withPort(ip, port);
  const veth = vethOf(node, web);
  expect(await answers(from, ip, port)).toBe(true);
  setProxyArp(veth);
  await faults.expectWorks(destination, source);
  expect(await answers(from, ip, port)).toBe(true);
  forget();
  const { remedy } = await faults.expectCode(destination, source, 'neighbour');
  expect(remedy).toEqual([`ip link set dev ${veth} type bridge_slave proxy_arp off`]);
  expect(await answers(from, ip, port)).toBe(false);
  forget();
});

it.each(QUESTIONS.filter(([from]) => from === client))(
  'whoever answers a client behind one may know it or not: never the wrong verdict',
  async (_, source, ip, port) => {
    setProxyArp(vethOf(node, client));
    for (const endpoint of [false, true]) {
      if (endpoint) setProxyArp(vethOf(node, web));
      forget();
      const answer = await world.ask(withPort(ip, port), source);
      forget();
      const really = await answers(client, ip, port);
      expect(answer.verdict, answer.cause).not.toBe(really ? 'fails' : 'works');
    }
  },
);

const [PROCESS, OWN, GUEST] = [9090, '10.9.0.1', '10.9.0.2'];

/** A bridge of the node with a port to a link on which somebody is who is no pod. */
function bridgeToOutside(): void {
  const wire = world.lab.wire.namespace;
  faults.ip('link add guests type bridge', 'link del guests');
  faults.ip(`link add port0 type veth peer name port1 netns ${wire.name}`, 'link del port0');
  for (const words of ['set port0 master guests up', 'set guests up']) world.run('ip', 'link', ...words.split(' '));
  world.run('ip', 'address', 'add', `${OWN}/24`, 'dev', 'guests');
  const there = (words: string) => wire.run('ip', ...words.split(' '));
  there('link add guests-wire type bridge');
  faults.undo(() => there('link del guests-wire'));
  there(`link add guest1 type veth peer name guest0 netns ${outside.namespace.name}`);
  faults.undo(() => there('link del guest1'));
  for (const name of ['port1', 'guest1']) there(`link set ${name} master guests-wire up`);
  there('link set guests-wire up');
  outside.namespace.run('ip', 'address', 'add', `${GUEST}/24`, 'dev', 'guest0');
  outside.namespace.run('ip', 'link', 'set', 'guest0', 'up');
}

it('a port that is no pod’s: whether who is behind it is found is not known', async () => {
  await node.serve({ port: PROCESS });
  bridgeToOutside();
  const ask = async () => (await world.askHere([{ destination: `${OWN}:${PROCESS}`, source: GUEST }]))[0]!;
  const set = (option: string, to: string) =>
    world.run('ip', 'link', 'set', 'dev', 'port0', 'type', 'bridge_slave', option, to);
  expect(await answers(outside, OWN, PROCESS)).toBe(true);
  set('proxy_arp', 'on');
  expect(await ask()).toMatchObject({ verdict: 'works' });
  expect(await answers(outside, OWN, PROCESS)).toBe(true);
  world.run('ip', 'neigh', 'flush', 'dev', 'guests');
  expect(await ask()).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('(proxy_arp)') });
  expect(await answers(outside, OWN, PROCESS)).toBe(false);
  set('proxy_arp', 'off');
  expect(await answers(outside, OWN, PROCESS)).toBe(true);
  expect(await ask()).toMatchObject({ verdict: 'works' });

  set('locked', 'on');
  world.run('bridge', 'fdb', 'flush', 'dev', 'port0', 'master', 'dynamic');
  expect(await ask()).toMatchObject({
    verdict: 'unknown',
    cause: expect.stringContaining('port0 of guests is locked'),
  });
  expect(await answers(outside, OWN, PROCESS)).toBe(false);
  const mac = outside.namespace.run('cat', '/sys/class/net/guest0/address').trim();
  world.run('bridge', 'fdb', 'replace', mac, 'dev', 'port0', 'master', 'static');
  expect(await answers(outside, OWN, PROCESS)).toBe(true);
  expect(await ask()).toMatchObject({ verdict: 'works' });
});
