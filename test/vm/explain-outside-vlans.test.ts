import { afterAll, beforeAll, expect, it } from 'vitest';
import { ExplainWorld, on, served, TARGET } from '../lab/explain/explain-world.ts';
import { answers, Faults, vethOf } from '../lab/explain/faults.ts';
import { removeAll } from '../lab/lab.ts';
import { patient } from '../lab/patience.ts';

// VLANs of a bridge whose port is the node's link to the outside.

const NODE_PORT = 30_080;
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, outside } = world;
/** In the subnet of pods. */
const NEAR = '10.244.1.200';

beforeAll(async () => {
  const nodePort = { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }] } as const;
  const objects = served('shop/web', '10.96.0.10', [on(node, web.ip())], nodePort);
  // At the node's address among pods, too.
  await world.begin(objects, '--nodeport-addresses', '10.244.1.0/24,192.168.50.0/24');
}, 600_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const vlan = (words: string) => void node.namespace.run('bridge', 'vlan', ...words.split(' '));
/** In place of VLAN 1. */
const member = (at: string, words: string) => {
  const self = at === 'lan' || at === 'cni0' ? ' self' : '';
  vlan(`del dev ${at} vid 1${self}`);
  faults.undo(() => vlan(`add dev ${at} vid 1 pvid untagged${self}`));
  const [vid] = /vid \d+/.exec(words) ?? [];
  vlan(`add dev ${at} ${words}${self}`);
  faults.undo(() => vlan(`del dev ${at} ${vid}${self}`));
};
/** The client sends and takes frames with a tag alone. */
const tagged = (address: string) => {
  faults.ip(`addr del ${address} dev eth0`, `addr add ${address} dev eth0`, outside);
  faults.ip('link add link eth0 name eth0.10 type vlan id 10', 'link del eth0.10', outside);
  for (const words of ['link set eth0.10 up', `addr add ${address} dev eth0.10`])
    outside.namespace.run('ip', ...words.split(' '));
};
const trunk = (address: string) => {
  member('eth0', 'vid 10');
  tagged(address);
};
const forget = () => {
  for (const { namespace } of [node, web, outside]) namespace.run('ip', 'neigh', 'flush', 'all');
  node.namespace.run('conntrack', '-F');
};

/** What is asked before and after a connection was tried: it may show where the client is. */
async function expectTrue(ip: string, port: number, client: string, allowed: readonly string[]): Promise<void> {
  for (const when of ['before', 'after']) {
    if (when === 'before') forget();
    const { verdict, code, cause } = await world.ask(`${ip}:${port}`, client);
    const real = (await answers(outside, ip, port)) ? 'works' : 'fails';
    const right = [real, ...allowed.filter((one) => one === 'unknown')];
    expect(right, `${when}: ${client} to ${ip}:${port}, ${real}: ${cause}`).toContain(verdict);
    if (verdict === 'fails') expect(code, cause).toBe('link-down');
    if (when === 'after') expect([verdict, real], cause).toEqual([allowed[0], allowed[1]]);
  }
}

const LAN = '192.168.50.1/24';
/** The node has its address on a bridge, or on a VLAN of it. */
const onBridge = (id?: number) => {
  faults.ip('link add lan type bridge vlan_filtering 1', 'link del lan');
  faults.ip(`addr del ${LAN} dev eth0`, `addr add ${LAN} dev eth0`);
  faults.ip('link set eth0 master lan', 'link set eth0 nomaster');
  node.namespace.run('ip', 'link', 'set', 'lan', 'up');
  const at = id === undefined ? 'lan' : `lan.${id}`;
  if (id !== undefined) {
    node.namespace.run('ip', ...`link add link lan name ${at} type vlan id ${id}`.split(' '));
    vlan(`add dev lan vid ${id} self`);
    node.namespace.run('ip', 'link', 'set', at, 'up');
  }
  node.namespace.run('ip', 'addr', 'add', LAN, 'dev', at);
};

it.each<[string, number | undefined, (address: string) => void, readonly ['works' | 'fails' | 'unknown', string]]>([
  ['one VLAN for all', undefined, () => {}, ['works', 'works']],
  ['the port in another VLAN', undefined, () => member('eth0', 'vid 10 pvid untagged'), ['fails', 'fails']],
  ['both in another VLAN', 10, () => member('eth0', 'vid 10 pvid untagged'), ['works', 'works']],
  ['the node in another VLAN than the port', 10, () => {}, ['fails', 'fails']],
  ['frames to the client have tags', undefined, () => member('eth0', 'vid 1 pvid'), ['unknown', 'fails']],
  ['frames of the client are of no VLAN', undefined, () => member('eth0', 'vid 1 untagged'), ['unknown', 'fails']],
  ['frames with tags both ways', 10, trunk, ['works', 'works']],
  ['tags that the client does not use', 10, () => member('eth0', 'vid 10'), ['unknown', 'fails']],
])('a client of a bridge that is the node’s link, %s', async (_, id, begin, allowed) => {
  onBridge(id);
  begin(`${outside.ip()}/24`);
  // The agent sees that the address has moved.
  const isSeen = async () => (await world.ask(`${node.ip()}:${NODE_PORT}`, outside.ip())).code !== 'nodeport-address';
  await expect.poll(isSeen, { timeout: patient(60_000), interval: 500 }).toBe(true);
  await expectTrue(node.ip(), NODE_PORT, outside.ip(), [...allowed, 'unknown']);
});

it.each<[string, () => void, Readonly<Record<'pod' | 'nodePort', readonly ['works' | 'fails' | 'unknown', string]>>]>([
  ['one VLAN for all', () => {}, { pod: ['works', 'works'], nodePort: ['works', 'works'] }],
  [
    'the client in another VLAN',
    () => member('eth0', 'vid 10 pvid untagged'),
    { pod: ['fails', 'fails'], nodePort: ['fails', 'fails'] },
  ],
  [
    'the pod in another VLAN',
    () => member(vethOf(node, web), 'vid 10 pvid untagged'),
    { pod: ['fails', 'fails'], nodePort: ['fails', 'fails'] },
  ],
  [
    'both in another VLAN than the node',
    () => {
      member('eth0', 'vid 10 pvid untagged');
      member(vethOf(node, web), 'vid 10 pvid untagged');
    },
    { pod: ['works', 'works'], nodePort: ['fails', 'fails'] },
  ],
])('a client of the bridge of pods, %s', async (_, begin, allowed) => {
  faults.ip('link set cni0 type bridge vlan_filtering 1', 'link set cni0 type bridge vlan_filtering 0');
  faults.ip('link set eth0 master cni0', 'link set eth0 nomaster');
  faults.ip(`addr add ${NEAR}/24 dev eth0`, `addr del ${NEAR}/24 dev eth0`, outside);
  begin();
  await expectTrue(web.ip(), TARGET, NEAR, [...allowed.pod, 'unknown']);
  await expectTrue('10.244.1.1', NODE_PORT, NEAR, [...allowed.nodePort, 'unknown']);
});
