import { afterAll, beforeAll, expect, it } from 'vitest';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { answers, Faults } from './faults.ts';
import { tunnel } from './tunnel.ts';

// What --probe may conclude from an attempt: it goes to the endpoint itself, and so may meet other rules than connections to a Service.

const world = new ExplainWorld();
const faults = new Faults(world);
const { node, other, far, client, web, outside } = world;
const VIP = '10.96.0.10';
const DATAGRAMS = '10.96.0.11';
const PROBE = { flags: ['--probe'] };

beforeAll(async () => {
  tunnel(node, 1, 2);
  tunnel(other, 2, 1);
  await world.begin([
    ...served('shop/far', VIP, [on(other, far.ip())], { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] }),
    ...served('shop/ufar', DATAGRAMS, [on(other, far.ip())], { ports: [{ port: 80, protocol: 'UDP' }] }),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const filter = (hook: string, rules: string, at = node) =>
  faults.nft(`table inet theirs { chain c { type filter hook ${hook} priority 0; ${rules}; } }`, 'inet theirs', at);
const ask = (destination: string, from = client.ip()) => world.ask(destination, from, '--probe');

it('rules that let pass what was translated alone stop no connection to the Service', async () => {
  filter('forward', 'ct status dnat accept; ip daddr 10.244.2.0/24 drop');
  expect(await answers(client, VIP)).toBe(true);
  const { verdict, cause } = await ask(VIP);
  expect(verdict, cause).toBe('unknown');
  expect(cause).toContain('inet theirs');
});

it('nor do those for what this node itself sends, whose address a client outside gets', async () => {
  filter('output', 'tcp dport 8080 drop');
  expect(await answers(outside, node.ip(), 30080)).toBe(true);
  const { verdict, cause } = await ask('node:30080', outside.ip());
  expect(verdict, cause).toBe('unknown');
});

it('an attempt that rules lead to somebody else says nothing of the endpoint', async () => {
  const chain = `chain c { type nat hook prerouting priority -90; ip daddr ${far.ip()} tcp dport 8080 dnat to ${web.ip()}:3000; }`;
  faults.nft(`table ip theirs { ${chain} }`, 'ip theirs');
  filter('forward', 'tcp dport 8080 drop', other);
  expect(await answers(client, VIP)).toBe(false);
  const { verdict, cause } = await ask(VIP);
  expect(verdict, cause).toBe('unknown');
});

it('where all ports are in use for other destinations, one is shared as connections do', async () => {
  faults.sysctl('net.ipv4.ip_local_port_range', '40000 40004', client);
  const held = await Promise.all(Array.from({ length: 5 }, () => client.hold({ ip: web.ip(), port: 3000 })));
  expect(await answers(client, VIP)).toBe(true);
  expect(await ask(VIP)).toMatchObject({ verdict: 'works' });
  for (const connection of held) await connection.close();
});

it('a firewall that refuses one port is no missing neighbour', async () => {
  filter('forward', 'tcp dport 8080 reject with icmpx admin-prohibited', other);
  const { cause } = await faults.expectCode(VIP, client.ip(), 'no-answer', PROBE);
  expect(cause).toContain('a firewall there stops it');
});

it('large packets are not told of where the endpoint’s other ports are silent', async () => {
  const rules =
    'ct state established,related accept; ip daddr 10.244.2.0/24 tcp dport 8080 accept; ip daddr 10.244.2.0/24 drop';
  filter('forward', rules, other);
  const answer = await ask(VIP);
  expect(answer).toMatchObject({ verdict: 'works' });
  expect(answer.notChecked.join()).toContain('how large packets fare');
});

it('large packets vanish that are as large as the tunnel says it takes', async () => {
  filter('prerouting', 'ip daddr 10.244.2.0/24 meta length > 1300 drop', other);
  const { cause } = await faults.expectCode(VIP, client.ip(), 'mtu', { verdict: 'partly', ...PROBE });
  expect(cause).toContain('vanish, small ones arrive');
});

it('of datagrams too a tunnel that is blocked is told', async () => {
  filter('input', 'udp dport 8472 drop', other);
  const answer = await world.ask(`${DATAGRAMS}:80`, client.ip(), '--probe', '--proto', 'udp');
  expect(answer).toMatchObject({ verdict: 'fails', code: 'overlay-blocked' });
});

it('rules of others that lead to nobody are named, and not mended as ours', async () => {
  const chain = `chain c { type nat hook prerouting priority -150; ip daddr ${VIP} tcp dport 80 dnat to 10.244.1.200:8080; }`;
  faults.nft(`table ip theirs { ${chain} }`, 'ip theirs');
  expect(await answers(client, VIP)).toBe(false);
  const { cause, remedy } = await faults.expectCode(VIP, client.ip(), 'foreign-drop');
  expect(cause).toContain('table ip theirs');
  expect(remedy[0]).toBe('nft -a list chain ip theirs c');
});
