import { afterAll, expect, it } from 'vitest';
import { removeAll } from '../namespace.ts';
import { cleanNode, preflight } from './node.ts';

afterAll(removeAll);

const PODS = '10.244.0.0/16';
const FLAGS = ['--cni', `--cluster-cidr=${PODS}`];

it.each([
  ['iptables-legacy, as Docker', 'iptables-legacy -P FORWARD DROP', 'iptables-legacy IPv4 (chain FORWARD)'],
  [
    'iptables-nft, as shorewall',
    'iptables-nft -N reject; iptables-nft -A reject -j REJECT; iptables-nft -A FORWARD -g reject',
    'iptables-nft IPv4 (chain reject)',
  ],
  [
    'a table of nftables',
    'nft "table inet site { chain passing { type filter hook forward priority 0; policy drop; ct state established accept; }; }"',
    'nftables table inet site (chain passing)',
  ],
])('tells what refuses pods until its remedy was pasted: %s', async (_, rules, place) => {
  const node = cleanNode('forward');
  const forward = async () => (await preflight(node, ...FLAGS)).found('rules.forward')!;
  expect(await forward()).toMatchObject({ state: 'ok' });
  node.run('sh', '-ec', rules);
  const { state, message, remedy } = await forward();
  expect([state, message]).toEqual(['warning', expect.stringContaining(`the agent lets no pods through ${place}`)]);
  const commands = /^let pods through there: (.*)$/.exec(remedy!)![1]!.replaceAll('<pod CIDR>', PODS).split('; ');
  node.run('sh', '-ec', commands[0]!);
  expect(await forward()).toMatchObject({ state: 'warning' });
  node.run('sh', '-ec', commands.slice(1).join('; '));
  expect(await forward()).toMatchObject({ state: 'ok', message: 'chain FORWARD lets pods through' });
});

it('says that the agent lets pods through a policy of iptables-nft', async () => {
  const node = cleanNode('forward');
  node.run('iptables-nft', '-P', 'FORWARD', 'DROP');
  const { found } = await preflight(node, ...FLAGS);
  expect(found('rules.forward')).toMatchObject({
    state: 'ok',
    message: expect.stringContaining('the agent lets pods'),
  });
  const without = await preflight(node, `--cluster-cidr=${PODS}`);
  expect(without.found('rules.forward')).toMatchObject({ state: 'warning' });
});
