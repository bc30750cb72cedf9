import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { answers, Faults, paste as pasteIn } from './faults.ts';

// What is told as a remedy names what is at fault and nothing else, whatever others call it.

useOwnLockFile();
const VIP = '10.96.0.10';
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, web2, far, client } = world;

beforeAll(async () => {
  await world.begin([...served('shop/web', VIP, [on(node, web.ip())])]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const paste = (line: string) => pasteIn(node, line);

/** In a folder of its own, where nothing is made by it. */
function pasteHarmless(line: string): string {
  const said = paste(`cd ${world.lab.folder}; ${line}`);
  expect(existsSync(join(world.lab.folder, 'PWNED'))).toBe(false);
  return said;
}

it('a pair stays in its bridge where the route of somebody else is at fault', async () => {
  const subnet = web.ip().replace(/\d+$/, '128/25');
  faults.ip('link add docker9 type bridge', 'link del docker9');
  world.run('ip', 'addr', 'add', subnet.replace('128/', '129/'), 'dev', 'docker9');
  world.run('ip', 'link', 'set', 'docker9', 'up');
  world.run('ip', 'route', 'add', `${web.ip()}/32`, 'dev', 'docker9');
  expect(await answers(client, VIP)).toBe(false);
  const { remedy } = await faults.expectCode(VIP, client.ip(), 'no-peer-route');
  expect(remedy.map(paste).join()).toContain('docker9');
  expect(await answers(web2, web.ip(), 8080)).toBe(true);
});

it.each([
  ['a link that is down', 'link-down', '203.0.113.5', () => {}],
  [
    'a setting of a link',
    'forwarding',
    '198.51.100.5',
    (name: string) => faults.sysctl(`net.ipv4.conf.${name}.forwarding`, '0'),
  ],
] as const)('names of links are words of the shell: %s', async (_what, code, from, fault) => {
  const name = 'e;>PWNED;';
  const own = from.replace(/\d+$/, '1/24');
  faults.ip(`link add ${name} type veth peer name pe0`, `link del ${name}`);
  world.run('ip', 'addr', 'add', own, 'dev', name);
  world.run('ip', 'link', 'set', name, 'up');
  if (code !== 'link-down') world.run('ip', 'link', 'set', 'pe0', 'up');
  fault(name);
  const { remedy } = await faults.expectCode(VIP, from, code);
  for (const line of remedy) pasteHarmless(line);
});

it('a node that is told to forward IPv6 keeps the routes that routers tell it', async () => {
  faults.sysctl('net.ipv6.conf.all.forwarding', '0');
  faults.sysctl('net.ipv6.conf.eth0.accept_ra', '1');
  const { remedy } = await faults.expectCode(withPort(far.ip('IPv6'), 8080), client.ip('IPv6'), 'forwarding');
  expect(remedy).toEqual(['sysctl -w net.ipv6.conf.eth0.accept_ra=2 net.ipv6.conf.all.forwarding=1']);
  paste(remedy[0]!);
  expect(world.run('sysctl', '-n', 'net.ipv6.conf.eth0.accept_ra').trim()).toBe('2');
  expect(world.run('sysctl', '-n', 'net.ipv6.conf.all.forwarding').trim()).toBe('1');
});

it('of several chains the one is shown that keeps answers out of connection tracking', async () => {
  for (const [name, priority, what] of [
    ['h1', -400, 'counter accept'],
    ['h2', -390, 'counter accept'],
    ['guilty', -300, 'notrack'],
  ] as const) {
    const chain = `chain c { type filter hook prerouting priority ${priority}; tcp sport 8080 ${what}; }`;
    faults.nft(`table inet ${name} { ${chain} }`, `inet ${name}`);
  }
  expect(await answers(client, VIP)).toBe(false);
  const { remedy } = await faults.expectCode(VIP, client.ip(), 'way-back');
  expect(remedy[0]).toBe('nft -a list chain inet guilty c');
  expect(paste(remedy[0]!)).toContain('notrack');
});

it('chains are shown that iptables-nft has a name for and nft has none', async () => {
  for (const chain of ['log', '~log0', 'a;b']) {
    const tool = ['iptables-nft', '-w'] as const;
    world.run(...tool, '-N', chain);
    faults.undo(() => world.run(...tool, '-X', chain));
    world.run(...tool, '-A', chain, '-p', 'tcp', '--dport', '8080', '-j', 'DROP');
    world.run(...tool, '-I', 'FORWARD', '-j', chain);
    faults.undo(() => {
      world.run(...tool, '-D', 'FORWARD', '-j', chain);
      world.run(...tool, '-F', chain);
    });
    const { remedy } = await faults.expectCode(VIP, client.ip(), 'foreign-drop');
    expect(paste(remedy[0]!)).toContain('--dport 8080 -j DROP');
    faults.mend();
  }
});

it('the rule is shown that gives packets the address of the endpoint as their source', async () => {
  const rule = `POSTROUTING -d ${web.ip()} -p tcp --dport 8080 -j SNAT --to ${web.ip()}`;
  faults.run('iptables-legacy', `-t nat -I ${rule}`, `-t nat -D ${rule}`);
  expect(await answers(client, VIP)).toBe(false);
  const { remedy } = await faults.expectCode(VIP, client.ip(), 'way-back');
  expect(paste(remedy[0]!)).toContain('-j SNAT');
});
