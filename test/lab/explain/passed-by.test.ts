import { afterAll, beforeAll, expect, it } from 'vitest';
import { createHost } from '../host.ts';
import { type Host, removeAll } from '../lab.ts';
import { createNamespace } from '../namespace.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// What goes from others to others without this node, and what of this node nobody has told to other nodes.

const world = new ExplainWorld();
const faults = new Faults(world);
const { node, other, web, client, far, outside } = world;
const [NODE_PORT, PROCESS] = [30_080, 9000];
const sibling = createHost({ name: 'sibling', namespace: createNamespace('sibling'), ips: ['10.244.1.150'] });
const DROPS = 'table inet theirs { chain f { type filter hook forward priority 0; policy drop; } }';

beforeAll(async () => {
  await node.serve({ port: PROCESS });
  for (const host of [sibling, outside, other]) await host.serve({ port: TARGET });
  await world.begin(
    served('shop/web', '10.96.0.10', [on(node, web.ip())], {
      type: 'NodePort',
      ports: [{ port: 80, nodePort: NODE_PORT }],
    }),
    ...['--nodeport-addresses', '0.0.0.0/0'],
  );
}, 300_000);
afterAll(async () => {
  await world.end();
  await sibling.remove();
  removeAll();
});

/** Asks about what works. @returns the answer, which says neither that it does not nor more than is known */
async function expectDoubt(from: Host, ip: string, port = TARGET, works = true) {
  const answer = await world.ask(`${ip}:${port}`, from.ip());
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', code: 'cannot-tell' });
  expect(await answers(from, ip, port)).toBe(works);
  return answer;
}

/** This node looks for somebody in vain. */
async function lookInVain(ip: string): Promise<void> {
  world.run('ip', 'neigh', 'flush', 'all');
  expect(await answers(node, ip, TARGET)).toBe(false);
  await expect.poll(() => world.run('ip', 'neigh', 'show', ip), { timeout: patient(10_000) }).toContain('FAILED');
}

it('rules of this node drop what it would forward, and others have each other on their link', async () => {
  faults.ip(`route add 10.244.2.0/24 via ${other.ip()}`, 'route del 10.244.2.0/24', outside);
  faults.nft(DROPS, 'inet theirs');
  const { cause, remedy } = await expectDoubt(outside, other.ip());
  expect(cause).toContain(
    `whether packets of ${outside.ip()} to ${other.ip()} come to this node: node-2 has that address`,
  );
  expect(cause).toContain('If that changes nothing:');
  expect(remedy[0]).toMatch(/^nodeplane explain .* # on node-2$/);
  await expectDoubt(outside, far.ip());
  for (const from of [other, far]) await expectDoubt(from, outside.ip());
  // What this node forwards in any case.
  await faults.expectCode(`${web.ip()}:${TARGET}`, far.ip(), 'foreign-drop');
  expect(await answers(far, web.ip(), TARGET)).toBe(false);
});

it('this node has no way to the client', async () => {
  faults.ip('addr add 198.51.100.7/32 dev lo', 'addr del 198.51.100.7/32 dev lo', outside);
  faults.ip('route add 198.51.100.7 via 192.168.50.101', 'route del 198.51.100.7', other);
  faults.ip('route add prohibit 198.51.100.7', 'route del prohibit 198.51.100.7');
  const answer = await world.ask(`${other.ip()}:${TARGET}`, '198.51.100.7');
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown' });
  const { kind } = await outside.connect({ ip: other.ip(), port: TARGET }, { sourceIp: '198.51.100.7' });
  expect(kind).toBe('answered');
  await faults.expectCode(`${node.ip()}:${PROCESS}`, '198.51.100.7', 'way-back');
});

it('somebody answers all but this node who has his address', async () => {
  const mac = world.run('cat', '/sys/class/net/eth0/address').trim();
  const drop = `arp saddr ether ${mac} drop`;
  faults.nft(`table arp f { chain in { type filter hook input priority 0; ${drop}; } }`, 'arp f', outside);
  await lookInVain(outside.ip());
  await expectDoubt(other, outside.ip());
  // A question has the kernel ask, for three seconds.
  await lookInVain(outside.ip());
  await faults.expectCode(`${outside.ip()}:${TARGET}`, client.ip(), 'neighbour');
  expect(await answers(client, outside.ip(), TARGET)).toBe(false);
});

it('a pod finds somebody on its bridge whom this node does not find', async () => {
  const { name } = sibling.namespace;
  faults.undo(() => void sibling.namespace.run('ip', 'link', 'del', 'mv1'));
  world.run('ip', 'link', 'add', 'link', 'cni0', 'name', 'mv1', 'netns', name, 'type', 'macvlan', 'mode', 'bridge');
  for (const words of [
    'link set lo up',
    'link set mv1 up',
    `addr add ${sibling.ip()}/24 dev mv1`,
    'route add default via 10.244.1.1',
  ])
    sibling.namespace.run('ip', ...words.split(' '));
  await lookInVain(sibling.ip());
  const bridge = 'net.bridge.bridge-nf-call-iptables';
  await expectDoubt(client, sibling.ip());
  faults.nft(DROPS, 'inet theirs');
  await expectDoubt(client, sibling.ip());
  faults.sysctl(bridge, '0');
  await expectDoubt(client, sibling.ip());
});

it('addresses of this node that nobody has told to other nodes', async () => {
  faults.ip('link add br1 type bridge', 'link del br1');
  for (const words of ['addr add 172.30.0.1/24 dev br1', 'link set br1 up'])
    node.namespace.run('ip', ...words.split(' '));
  faults.ip('addr add 172.28.0.1/32 dev lo', 'addr del 172.28.0.1/32 dev lo');
  faults.ip('addr add 192.168.50.77/24 dev eth0', 'addr del 192.168.50.77/24 dev eth0');
  for (const from of [other, far]) {
    for (const ip of ['172.30.0.1', '172.28.0.1']) {
      for (const port of [PROCESS, NODE_PORT]) await expectDoubt(from, ip, port, false);
    }
    for (const ip of ['10.244.1.1', '192.168.50.77', node.ip()]) {
      await faults.expectWorks(`${ip}:${PROCESS}`, from.ip());
      expect(await answers(from, ip, PROCESS)).toBe(true);
    }
  }
});
