import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Answer } from '../../../src/explain/index.ts';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served } from './explain-world.ts';
import { answers, Faults, paste as pasteIn } from './faults.ts';

// What is told as a remedy, pasted as it is into a shell of the node.

useOwnLockFile();
const VIP = { IPv4: '10.96.0.10', IPv6: 'fd00:96::10' } as const;
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, far, client } = world;
/** Its bridge has the name of a VLAN's link. */
const tagged = node.addPod('tagged', {
  conflist: {
    cniVersion: '1.0.0',
    name: 'tagged',
    plugins: [
      {
        type: 'nodeplane-cni',
        bridge: 'br.5',
        isDefaultGateway: true,
        ipam: {
          type: 'host-local',
          ranges: [[{ subnet: '10.244.77.0/24' }]],
          dataDir: join(world.lab.folder, 'ipam-tagged'),
        },
      },
    ],
  },
});

beforeAll(async () => {
  await world.begin([
    ...served('shop/web', VIP.IPv4, [on(node, web.ip())]),
    ...served('shop/web6', VIP.IPv6, [on(node, web.ip('IPv6'))]),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const paste = (line: string) => pasteIn(node, line);

/** All lines run, and the question is answered otherwise then. */
async function mends({ remedy }: Answer, vip: string, from = client): Promise<void> {
  for (const line of remedy) paste(line);
  await faults.expectWorks(vip, from.ip(vip.includes(':') ? 'IPv6' : 'IPv4'));
  expect(await answers(from, vip)).toBe(true);
}

it('what a proxy of another mode has left is removed beside the agent, whose rules stay', async () => {
  const table = ['iptables-legacy', '-t', 'filter'] as const;
  for (const words of [
    '-N KUBE-FORWARD',
    '-I FORWARD -j KUBE-FORWARD',
    '-A KUBE-FORWARD -p tcp --dport 8080 -j REJECT',
  ])
    world.run(...table, ...words.split(' '));
  expect(await answers(client, VIP.IPv4)).toBe(false);
  const answer = await faults.expectCode(VIP.IPv4, client.ip(), 'old-proxy');
  expect(paste(answer.remedy[1]!)).toContain('REJECT');
  const rules = () => world.run('nft', 'list', 'table', 'ip', 'nodeplane');
  const before = rules();
  paste(answer.remedy[0]!);
  expect(rules()).toBe(before);
  await faults.expectWorks(VIP.IPv4, client.ip());
  expect(await answers(client, VIP.IPv4)).toBe(true);
});

it('what kube-proxy has left of the agent’s own mode is removed without it', async () => {
  const chain = `chain nat { type nat hook prerouting priority -110; ip daddr ${VIP.IPv4} tcp dport 80 dnat to 10.244.1.200:8080; }`;
  world.run('nft', `table ip kube-proxy { ${chain.replace(' }', '\n}')} }`.replaceAll(' }', '\n}'));
  const answer = await faults.expectCode(VIP.IPv4, client.ip(), 'old-proxy');
  expect(paste(answer.remedy[1]!)).toContain('10.244.1.200:8080');
  await mends({ ...answer, remedy: answer.remedy.slice(0, 1) }, VIP.IPv4);
});

it.each(['IPv4', 'IPv6'] as const)('the rule of legacy iptables that drops is shown (%s)', async (family) => {
  const words = '-p tcp --dport 8080 -m comment --comment theirs -j DROP';
  const tool = family === 'IPv4' ? 'iptables-legacy' : 'ip6tables-legacy';
  faults.run(tool, `-I FORWARD ${words}`, `-D FORWARD ${words}`);
  const { remedy } = await faults.expectCode(VIP[family], client.ip(family), 'foreign-drop');
  expect(remedy.map(paste).join()).toContain('theirs');
});

it.each(['IPv4', 'IPv6'] as const)('frames of a bridge are shown to the rules (%s)', async (family) => {
  faults.sysctl(`net.bridge.bridge-nf-call-ip${family === 'IPv4' ? '' : '6'}tables`, '0');
  await mends(await faults.expectCode(VIP[family], client.ip(family), 'bridge-nf'), VIP[family]);
});

it.each(['rp_filter', 'forwarding'])('a setting of a link with a dot in its name: %s', async (setting) => {
  faults.sysctl('net.ipv4.conf.br/5.rp_filter', '0');
  if (setting === 'rp_filter') {
    faults.sysctl('net.ipv4.conf.br/5.rp_filter', '1');
    faults.ip(`route add ${tagged.ip()}/32 dev eth0`, `route del ${tagged.ip()}/32 dev eth0`);
  } else faults.sysctl('net.ipv4.conf.br/5.forwarding', '0');
  expect(await answers(tagged, VIP.IPv4)).toBe(false);
  const { remedy, code } = await world.ask(VIP.IPv4, tagged.ip());
  expect(code).toBe(setting.replace('_', '-'));
  expect(remedy).toHaveLength(1);
  paste(remedy[0]!);
  expect(world.run('sysctl', '-n', `net.ipv4.conf.br/5.${setting}`).trim()).toBe(setting === 'rp_filter' ? '2' : '1');
});

it('policy rules of IPv6 are shown', async () => {
  const rule = `from ${client.ip('IPv6')} to ${far.ip('IPv6')} unreachable pref 99`;
  faults.ip(`-6 rule add ${rule}`, '-6 rule del pref 99');
  const { remedy } = await world.ask(`[${far.ip('IPv6')}]:8080`, client.ip('IPv6'));
  expect(remedy[0]).toBe('ip -6 rule');
  expect(paste(remedy[0]!)).toContain('99:');
});

it('names that pods give to their links are words of the shell', async () => {
  // A link's name has no slash: what it runs writes into the folder it runs in.
  client.namespace.run('ip', 'link', 'set', 'eth0', 'down');
  client.namespace.run('ip', 'link', 'set', 'eth0', 'name', `$(touch\${IFS}x)`);
  const { remedy } = await faults.expectCode(VIP.IPv4, client.ip(), 'link-down');
  paste(`cd ${world.lab.folder}; ${remedy[0]}`);
  expect(existsSync(join(world.lab.folder, 'x'))).toBe(false);
  expect(client.namespace.run('ip', 'link', 'show', 'up')).toContain('touch');
});
