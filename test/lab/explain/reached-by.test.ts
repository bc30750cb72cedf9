import { afterAll, beforeAll, expect, it } from 'vitest';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults, keepSocket, vethOf } from './faults.ts';

// Which addresses a client reaches at all, and by which the node answers it.

useOwnLockFile();
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, other, web, web2, client, far, outside } = world;
const [NODE_PORT, NODE_PORT_6] = [30_080, 30_086];
const PROCESS = 9000;

beforeAll(async () => {
  const ports = { type: 'NodePort', ports: [{ port: 80, nodePort: NODE_PORT }], externalIPs: [web2.ip()] } as const;
  await world.begin(
    [
      ...served('shop/web', '10.96.0.10', [on(node, web.ip())], ports),
      ...served('shop/web6', 'fd00:96::10', [on(node, web.ip('IPv6'))], {
        type: 'NodePort',
        ports: [{ port: 80, nodePort: NODE_PORT_6 }],
      }),
    ],
    ...['--proxy-mode', 'iptables', '--iptables-variant', 'nft'],
  );
  await node.serve({ port: PROCESS });
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

it('a NodePort at loopback, whose packets have another source before they are routed', async () => {
  const answer = await world.ask(`127.0.0.1:${NODE_PORT}`, 'node');
  expect(answer, answer.cause).toMatchObject({ verdict: 'works' });
  expect(await answers(node, '127.0.0.1', NODE_PORT)).toBe(true);
});

it('other ports of an external address are those of whoever has it', async () => {
  for (const [port, works] of [
    [80, true],
    [TARGET, true],
    [8999, false],
  ] as const) {
    const answer = await world.ask(`${web2.ip()}:${port}`, client.ip());
    expect(answer.verdict, answer.cause).toBe(works ? 'works' : 'fails');
    expect(await answers(client, web2.ip(), port)).toBe(works);
  }
});

it('that other nodes reach a pod does not tell that clients outside do', async () => {
  for (const from of [far, other]) expect(await answers(from, web.ip(), TARGET)).toBe(true);
  const answer = await world.ask(`${web.ip()}:${TARGET}`, outside.ip());
  expect(answer.verdict, answer.cause).toBe('unknown');
  expect(await answers(outside, web.ip(), TARGET)).toBe(false);
  faults.ip(`route add ${web.ip()} via ${node.ip()}`, `route del ${web.ip()}`, outside);
  expect(await answers(outside, web.ip(), TARGET)).toBe(true);
  expect(await world.ask(`${web.ip()}:${TARGET}`, outside.ip())).toMatchObject({ verdict: 'works' });
});

it('an address of the bridge of pods is none that clients outside reach', async () => {
  const to = ['10.244.1.1', PROCESS] as const;
  expect(await answers(client, ...to)).toBe(true);
  const answer = await world.ask(to.join(':'), outside.ip());
  expect(answer.verdict, answer.cause).toBe('unknown');
  expect(await answers(outside, ...to)).toBe(false);
});

it('a client that rules of the node give another source on its way in', async () => {
  const rule = `tcp dport ${PROCESS} snat ip to 10.9.9.9`;
  faults.nft(`table inet theirs { chain in { type nat hook input priority 100; ${rule}; } }`, 'inet theirs');
  const answer = await world.ask(`${node.ip()}:${PROCESS}`, client.ip());
  expect(answer.verdict, answer.cause).toBe('works');
  expect(await client.connect({ ip: node.ip(), port: PROCESS })).toMatchObject({
    kind: 'answered',
    source: '10.9.9.9',
  });
});

it('stale-udp: a flow that rules of before have made', async () => {
  const options = { sourcePort: 41_004, timeoutMs: patient(300) };
  const target = { ip: web.ip(), port: TARGET, protocol: 'UDP' } as const;
  const send = () => client.connect(target, options);
  const rule = `ip daddr ${web.ip()} udp dport ${TARGET} dnat to ${outside.ip()}:9`;
  faults.nft(`table ip theirs { chain nat { type nat hook prerouting priority -110; ${rule}; } }`, 'ip theirs');
  await send();
  faults.mend();
  expect((await send()).kind).not.toBe('answered');
  const flags = ['--proto', 'udp'];
  const release = await keepSocket(faults, client, target, options.sourcePort);
  const answer = await world.ask(`${web.ip()}:${TARGET}`, client.ip(), ...flags);
  expect(answer, answer.cause).toMatchObject({ verdict: 'partly', code: 'stale-udp' });
  await release();
  world.run('conntrack', ...answer.remedy[0]!.split(' ').slice(1));
  expect((await send()).kind).toBe('answered');
  expect(await world.ask(`${web.ip()}:${TARGET}`, client.ip(), ...flags)).toMatchObject({ verdict: 'works' });
});

it('an endpoint of IPv6 with a route of type anycast, which is none to frames of a bridge', async () => {
  faults.ip(`-6 route add anycast ${web.ip('IPv6')} dev cni0`, `-6 route del anycast ${web.ip('IPv6')} dev cni0`);
  const answer = await world.ask('[fd00:96::10]:80', client.ip('IPv6'));
  expect(answer.verdict, answer.cause).toBe('unknown');
  expect(await answers(client, 'fd00:96::10')).toBe(true);
});

it('answers by a router that nobody has found', async () => {
  faults.ip(`route add ${outside.ip()} via 192.168.50.99 dev eth0`, `route del ${outside.ip()}`);
  expect(await answers(outside, node.ip(), NODE_PORT)).toBe(false);
  // The kernel asks three times, a second each.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  const answer = await world.ask(`node:${NODE_PORT}`, outside.ip());
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('192.168.50.99') });
});

it('a pod that gets itself from an address that nobody of its link has', async () => {
  const rule = `tcp dport ${TARGET} snat to 10.244.1.77`;
  faults.nft(`table ip theirs { chain nat { type nat hook postrouting priority 90; ${rule}; } }`, 'ip theirs');
  const answer = await world.ask('10.96.0.10:80', web.ip());
  expect(answer, answer.cause).toMatchObject({ verdict: 'unknown', cause: expect.stringContaining('10.244.1.77') });
  expect(await answers(web, '10.96.0.10')).toBe(false);
});

it('a pod gets itself by a port without hairpin mode where the bridge shows no frames to rules', async () => {
  const port = `link set dev ${vethOf(node, web)} hairpin`;
  faults.run('bridge', `${port} off`, `${port} on`);
  const ask = () => world.ask('10.96.0.10:80', web.ip());
  expect(await ask()).toMatchObject({ verdict: 'fails', code: 'hairpin' });
  expect(await answers(web, '10.96.0.10')).toBe(false);
  faults.sysctl('net.bridge.bridge-nf-call-iptables', '0');
  const answer = await ask();
  expect(answer, answer.cause).toMatchObject({ verdict: 'works' });
  expect(await answers(web, '10.96.0.10')).toBe(true);
});

it('a NodePort where it is none is for whoever has the number there', async () => {
  const ip = node.ip('IPv6');
  const ask = () => world.ask(`[${ip}]:${NODE_PORT}`, client.ip('IPv6'));
  expect(await ask()).toMatchObject({ verdict: 'fails', code: 'family' });
  expect(await answers(client, ip, NODE_PORT)).toBe(false);
  await node.serve({ port: NODE_PORT, ip });
  const answer = await ask();
  expect(answer, answer.cause).toMatchObject({ verdict: 'works' });
  expect(await answers(client, ip, NODE_PORT)).toBe(true);
});

it('so is one at an address that --nodeport-addresses leaves out', async () => {
  await world.end();
  await world.startAgent(
    ...['--proxy-mode', 'iptables', '--iptables-variant', 'nft', '--nodeport-addresses', '10.244.1.1/32,fd00:77::/64'],
  );
  expect(await world.ask(`node:${NODE_PORT}`, outside.ip())).toMatchObject({
    verdict: 'fails',
    code: 'nodeport-address',
  });
  expect(await answers(outside, node.ip(), NODE_PORT)).toBe(false);
  // No address of IPv6 is among them, that of the bridge, which the Node object does not have, neither.
  const gateway = 'fd00:10:244:1::1';
  for (const [ip, text] of [
    [node.ip('IPv6'), '--nodeport-addresses leaves it out'],
    [gateway, `${gateway}, nor at any other IPv6 address`],
  ] as const) {
    const none = await world.ask(`[${ip}]:${NODE_PORT_6}`, client.ip('IPv6'));
    expect(none).toMatchObject({ verdict: 'fails', code: 'nodeport-address', cause: expect.stringContaining(text) });
    expect(await answers(client, ip, NODE_PORT_6)).toBe(false);
  }
  await node.serve({ port: NODE_PORT, ip: node.ip() });
  const answer = await world.ask(`node:${NODE_PORT}`, outside.ip());
  expect(answer, answer.cause).toMatchObject({ verdict: 'works' });
  expect(await answers(outside, node.ip(), NODE_PORT)).toBe(true);
});
