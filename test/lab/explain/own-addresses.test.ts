import { afterAll, beforeAll, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Addresses that a link of the node or of a pod has, and that the kernel does not take for its own.

const [AT_BRIDGE, AT_BRIDGE_6] = ['10.51.0.1', 'fd00:5d::1'];
const [VIP_4, VIP_6] = ['10.96.0.12', 'fd00:10:96::12'];
/** The node does not listen on these. */
const [OF_POD, OF_OTHER] = [8097, 8096];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, web2, client, outside } = world;

beforeAll(async () => {
  await node.serve({ port: TARGET });
  await world.begin([
    ...served('shop/v4', VIP_4, [on(node, AT_BRIDGE)]),
    ...served('shop/v6', VIP_6, [on(node, AT_BRIDGE_6)]),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

/** Never that it works where it does not, nor the other way round; of these nobody has to know. */
async function expectNotWrong(destination: string, from: typeof outside | typeof node, ip: string, port: number) {
  const answer = await world.ask(destination, from === node ? 'node' : from.ip(ip.includes(':') ? 'IPv6' : 'IPv4'));
  const works = await answers(from, ip, port);
  expect(answer.verdict, answer.cause).not.toBe(works ? 'fails' : 'works');
  return { answer, works };
}

it('of a link that is down: one of IPv4 is taken, one of IPv6 that is kept is not', async () => {
  faults.ip('link add br9 type bridge', 'link del br9');
  for (const words of [
    'link set br9 up',
    `addr add ${AT_BRIDGE}/24 dev br9`,
    `addr add ${AT_BRIDGE_6}/64 dev br9 nodad`,
  ])
    node.namespace.run('ip', ...words.split(' '));
  node.namespace.run('sysctl', '-qw', 'net.ipv6.conf.br9.keep_addr_on_down=1');
  const cases = [
    [VIP_4, 80, true],
    [AT_BRIDGE, TARGET, true],
    [VIP_6, 80, false],
    [AT_BRIDGE_6, TARGET, false],
  ] as const;
  for (const [ip, port] of cases) expect(await answers(client, ip, port)).toBe(true);
  node.namespace.run('ip', 'link', 'set', 'br9', 'down');
  node.namespace.run('conntrack', '-F');
  for (const [ip, port, works] of cases) {
    const at = withPort(ip, port);
    const found = await expectNotWrong(at, client, ip, port);
    expect(found.works).toBe(works);
    if (works) expect(found.answer.verdict, found.answer.cause).toBe('works');
  }
});

it('without its local route', async () => {
  faults.ip('addr add 192.168.50.88/24 dev eth0', 'addr del 192.168.50.88/24 dev eth0');
  node.namespace.run('ip', 'route', 'del', 'local', '192.168.50.88', 'dev', 'eth0', 'table', 'local');
  for (const from of [client, outside])
    expect((await expectNotWrong(`192.168.50.88:${TARGET}`, from, '192.168.50.88', TARGET)).works).toBe(false);
});

/** The address is somebody's on the link already, so that whoever gets it next does not take it. */
async function duplicate(of: typeof node | typeof web, address: string): Promise<void> {
  for (const name of ['eth0', 'all']) faults.sysctl(`net.ipv6.conf.${name}.accept_dad`, '1', of);
  faults.ip(`addr add ${address}/64 dev eth0`, `addr del ${address}/64 dev eth0`, of);
  await expect.poll(() => of.namespace.run('ip', '-6', 'addr', 'show', 'dev', 'eth0')).toContain('dadfailed');
}

it('of the node, which somebody else had already', async () => {
  outside.namespace.run('ip', 'addr', 'add', 'fd00:50::88/64', 'dev', 'eth0', 'nodad');
  await duplicate(node, 'fd00:50::88');
  outside.namespace.run('ip', 'addr', 'del', 'fd00:50::88/64', 'dev', 'eth0');
  for (const from of [client, outside])
    expect((await expectNotWrong(`[fd00:50::88]:${TARGET}`, from, 'fd00:50::88', TARGET)).works).toBe(false);
});

it('of a pod, which another pod has', async () => {
  await duplicate(web2, web.ip('IPv6'));
  const { answer, works } = await expectNotWrong(`[${web.ip('IPv6')}]:${TARGET}`, client, web.ip('IPv6'), TARGET);
  expect(works).toBe(true);
  expect(answer.verdict, answer.cause).toBe('works');
});

it('of the node and of the pod that connects', async () => {
  faults.ip(`addr add ${client.ip()}/32 dev lo`, `addr del ${client.ip()}/32 dev lo`);
  const { answer, works } = await expectNotWrong(`${node.ip()}:${TARGET}`, client, node.ip(), TARGET);
  expect(works).toBe(false);
  expect(answer.cause).toContain('both this node and a pod of it');
});

it('of the node and of a pod that another one of its link knows', async () => {
  await web.serve({ port: OF_POD });
  expect(await answers(client, web.ip(), OF_POD)).toBe(true);
  faults.ip(`addr add ${web.ip()}/32 dev lo`, `addr del ${web.ip()}/32 dev lo`);
  const { answer, works } = await expectNotWrong(`${web.ip()}:${OF_POD}`, client, web.ip(), OF_POD);
  expect(works).toBe(true);
  expect(answer.cause).toContain('both this node and a pod on the client’s link');
});

it('of a pod in which nobody listens, and of one beside it which answers', async () => {
  await web2.serve({ port: OF_OTHER });
  faults.ip(`addr add ${web.ip()}/32 dev lo`, `addr del ${web.ip()}/32 dev lo`, web2);
  const mac = web2.namespace.run('cat', '/sys/class/net/eth0/address').trim();
  const found = `neigh replace ${web.ip()} lladdr ${mac} dev eth0 nud reachable`;
  faults.ip(found, `neigh del ${web.ip()} dev eth0`, client);
  const { answer, works } = await expectNotWrong(`${web.ip()}:${OF_OTHER}`, client, web.ip(), OF_OTHER);
  expect({ works, verdict: answer.verdict }, answer.cause).toEqual({ works: true, verdict: 'unknown' });
  await web2.stopServing({ port: OF_OTHER });
  await faults.expectCode(`${web.ip()}:${OF_OTHER}`, client.ip(), 'target-port');
});

it.each(['reachable', 'stale'])('of a pod, at which the node has heard of another before (%s)', async (state) => {
  expect(await answers(client, node.ip(), TARGET)).toBe(true);
  const wrong = `neigh replace ${client.ip()} lladdr 02:00:00:00:00:01 dev cni0 nud ${state}`;
  faults.ip(wrong, `neigh del ${client.ip()} dev cni0`);
  const { answer, works } = await expectNotWrong(`${node.ip()}:${TARGET}`, client, node.ip(), TARGET);
  expect(works).toBe(false);
  expect(answer.cause).toContain('this node takes 02:00:00:00:00:01 for the pod');
});

it('of nobody, that rules give to clients: who answers it on the endpoint’s link is not known', async () => {
  const [beside, elsewhere] = ['10.244.1.99', '10.9.9.9'];
  const given = (source: string) =>
    faults.nft(
      `table ip theirs { chain source { type nat hook postrouting priority 90; tcp dport ${TARGET} snat to ${source}; } }`,
      'ip theirs',
    );
  given(beside);
  const lost = await expectNotWrong(`${web.ip()}:${TARGET}`, client, web.ip(), TARGET);
  expect(lost.works).toBe(false);
  expect(lost.answer.cause).toContain(`who has ${beside}`);
  faults.mend();
  // Answers to that one come to the node, which translates them back.
  given(elsewhere);
  world.run('conntrack', '-F');
  const { answer, works } = await expectNotWrong(`${web.ip()}:${TARGET}`, client, web.ip(), TARGET);
  expect({ works, verdict: answer.verdict }, answer.cause).toEqual({ works: true, verdict: 'works' });
});
