import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, type Pod, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Pods that neither ask nor answer who has an address, or do not answer: who reaches them depends on who knows them already.

const VIP = '10.96.0.10';
/** Of a Service with an endpoint on the other node. */
const FAR = '10.96.0.11';
const NODE_PORT = 30_080;
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, other, web, far, client, outside } = world;
const [WEB, CLIENT, GATEWAY] = [web.ip(), client.ip(), '10.244.1.1'];

beforeAll(() => {
  const ports = { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] } as const;
  return world.begin([
    ...served('shop/web', VIP, [on(node, WEB)], ports),
    ...served('shop/far', FAR, [on(other, far.ip())]),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const noArp = (pod: Pod) => faults.ip('link set eth0 arp off', 'link set eth0 arp on', pod);
const silent = (pod: Pod) => faults.sysctl('net.ipv4.conf.eth0.arp_ignore', '8', pod);
const forget = (...hosts: Host[]) => {
  for (const { namespace } of hosts) namespace.run('ip', 'neigh', 'flush', 'all');
};
const macOf = (host: Host, device = 'eth0') => host.namespace.run('cat', `/sys/class/net/${device}/address`).trim();
const fixed = (host: Host, ip: string, mac: string, device = 'eth0') =>
  faults.ip(`neigh replace ${ip} lladdr ${mac} dev ${device} nud permanent`, `neigh del ${ip} dev ${device}`, host);

type Way = readonly [host: Host, source: string, ip: string, at: number];
const ways = {
  'client to Service': [client, CLIENT, VIP, 80],
  'client to pod': [client, CLIENT, WEB, TARGET],
  'client to far Service': [client, CLIENT, FAR, 80],
  'client to NodePort': [client, CLIENT, node.ip(), NODE_PORT],
  'pod to its own Service': [web, WEB, VIP, 80],
  'node to Service': [node, 'node', VIP, 80],
  'node to pod': [node, 'node', WEB, TARGET],
  'outside to NodePort': [outside, outside.ip(), node.ip(), NODE_PORT],
} as const satisfies Record<string, Way>;

/** All know all others. */
async function meet(): Promise<void> {
  forget(node, web, client, outside);
  world.run('conntrack', '-F');
  for (const [host, , ip, at] of Object.values(ways)) expect(await answers(host, ip, at)).toBe(true);
  // By Services alone the two pods of the bridge would not be known to each other.
  expect(await answers(web, CLIENT, TARGET)).toBe(false);
  world.run('conntrack', '-F');
}

// What stands here as not told depends on what has just been sent, and on what is asked again while the connection tries.
it.each<[string, () => void, Partial<Record<keyof typeof ways, 'works' | 'fails' | 'unknown'>>]>([
  [
    'an endpoint with no ARP that the node knows',
    () => noArp(web),
    { 'client to pod': 'fails', 'client to Service': 'fails', 'node to pod': 'fails', 'node to Service': 'unknown' },
  ],
  [
    'an endpoint with no ARP that nobody knows',
    () => {
      noArp(web);
      forget(node, client);
    },
    {
      'client to pod': 'fails',
      'client to Service': 'fails',
      'node to Service': 'fails',
      'pod to its own Service': 'fails',
      'outside to NodePort': 'fails',
    },
  ],
  [
    'an endpoint with no ARP, and fixed entries on all sides',
    () => {
      noArp(web);
      fixed(web, GATEWAY, macOf(node, 'cni0'));
      fixed(web, CLIENT, macOf(client));
      fixed(node, WEB, macOf(web), 'cni0');
      fixed(client, WEB, macOf(web));
    },
    {
      'client to pod': 'works',
      'client to Service': 'works',
      'node to pod': 'works',
      'node to Service': 'works',
      'outside to NodePort': 'works',
    },
  ],
  [
    'a client with no ARP that all know',
    () => noArp(client),
    { 'client to pod': 'fails', 'client to Service': 'unknown', 'client to far Service': 'unknown' },
  ],
  [
    'a client with no ARP that the node has forgotten',
    () => {
      noArp(client);
      forget(node);
    },
    { 'client to pod': 'fails', 'client to far Service': 'fails' },
  ],
  [
    'a client that answers no ARP and asks first',
    () => {
      silent(client);
      forget(client);
      node.namespace.run('ip', 'neigh', 'flush', 'dev', 'cni0');
    },
    { 'client to NodePort': 'works' },
  ],
  [
    'a client that answers no ARP and knows its gateway',
    () => {
      silent(client);
      forget(node, web);
    },
    { 'client to Service': 'fails', 'client to far Service': 'unknown' },
  ],
  [
    'an endpoint that answers no ARP, and knows its gateway',
    () => {
      silent(web);
      forget(node);
    },
    { 'pod to its own Service': 'unknown', 'node to Service': 'fails' },
  ],
])('%s', async (_, begin, expected) => {
  for (const [name, told] of Object.entries(expected)) {
    const [host, source, ip, at] = ways[name as keyof typeof ways];
    await meet();
    begin();
    const [answer] = await world.askHere([{ destination: `${ip}:${at}`, source }]);
    expect(answer!.verdict, `${name}: ${answer!.cause}`).toBe(told);
    if (told !== 'unknown') expect(await answers(host, ip, at), name).toBe(told === 'works');
    faults.mend();
  }
});

it('a client outside did not answer when this node asked last, and does now', async () => {
  const setArp = (value: string) => outside.namespace.run('ip', 'link', 'set', 'eth0', 'arp', value);
  setArp('off');
  faults.undo(() => void setArp('on'));
  forget(node);
  expect(await answers(node, outside.ip(), TARGET)).toBe(false);
  const entry = () => node.namespace.run('ip', 'neigh', 'show', outside.ip());
  await expect.poll(entry, { timeout: patient(10_000) }).toContain('FAILED');
  setArp('on');
  await faults.expectWorks(`${node.ip()}:${NODE_PORT}`, outside.ip());
  expect(entry()).toContain('REACHABLE');
  expect(await answers(outside, node.ip(), NODE_PORT)).toBe(true);
});
