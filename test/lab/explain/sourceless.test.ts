import { afterAll, beforeAll, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import { type Host, type Pod, removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Policy rules that ask for what a route is looked up with: a source, which sockets do not have yet that ask for none; the protocol; and
// the user, who is root for what is forwarded. No verdict may be one that a real connection contradicts.

const PROCESS = 9000;
const [NODE_PORT, NODE_PORT6] = [30_080, 30_086];
const world = new ExplainWorld();
const faults = new Faults(world);
const { node, web, client, outside } = world;

type Protocol = 'TCP' | 'UDP';
interface Way {
  readonly from: Host;
  readonly ip: string;
  readonly port: number;
  readonly protocol: Protocol;
}

beforeAll(async () => {
  for (const protocol of ['TCP', 'UDP'] as const) await node.serve({ port: PROCESS, protocol });
  const ports = (protocol: Protocol, nodePort: number) =>
    ({ type: 'NodePort', ports: [{ port: 80, protocol, nodePort }] }) as const;
  await world.begin([
    ...served('shop/web', '10.96.0.10', [on(node, web.ip())], ports('TCP', NODE_PORT)),
    ...served('shop/dns', '10.96.0.11', [on(node, web.ip())], ports('UDP', NODE_PORT)),
    ...served('shop/web6', 'fd00:96::10', [on(node, web.ip('IPv6'))], ports('TCP', NODE_PORT6)),
    ...served('shop/dns6', 'fd00:96::11', [on(node, web.ip('IPv6'))], ports('UDP', NODE_PORT6)),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

/** Of both families and protocols. */
const WAYS: readonly Way[] = (['IPv4', 'IPv6'] as const).flatMap((family) => {
  const isOld = family === 'IPv4';
  return (['TCP', 'UDP'] as const).flatMap((protocol): Way[] => {
    const vip = `${isOld ? '10.96.0.1' : 'fd00:96::1'}${protocol === 'TCP' ? 0 : 1}`;
    const nodePort = isOld ? NODE_PORT : NODE_PORT6;
    return [
      { from: client, ip: vip, port: 80, protocol },
      { from: client, ip: web.ip(family), port: TARGET, protocol },
      { from: client, ip: node.ip(family), port: PROCESS, protocol },
      { from: node, ip: vip, port: 80, protocol },
      { from: outside, ip: node.ip(family), port: nodePort, protocol },
      { from: outside, ip: node.ip(family), port: PROCESS, protocol },
    ];
  });
});

const rule = (words: readonly [ipv4: string, ipv6: string], pod?: Pod) => {
  for (const [index, flag] of ['-4', '-6'].entries())
    faults.ip(`${flag} rule add ${words[index]} prohibit prio 60`, `${flag} rule del prio 60`, pod);
};
const own = (host: Host) => [`from ${host.ip()}`, `from ${host.ip('IPv6')}`] as const;
const OF_PODS = ['not from 10.244.0.0/16', 'not from fd00:10:244::/48'] as const;

it.each<[string, () => void]>([
  ['a client sends nothing from its address', () => rule(own(client), client)],
  ['a client sends nothing without its address', () => rule(OF_PODS, client)],
  ['an endpoint sends nothing from its address', () => rule(own(web), web)],
  ['an endpoint sends nothing without its address', () => rule(OF_PODS, web)],
  ['the node sends nothing from its address', () => rule(own(node))],
  [
    'the node sends nothing without its address',
    () => rule([`iif lo not from ${node.ip()}`, `iif lo not from ${node.ip('IPv6')}`]),
  ],
  ['nothing of UDP', () => rule(['ipproto udp', 'ipproto udp'])],
  ['nothing of root', () => rule(['uidrange 0-0', 'uidrange 0-0'])],
])('%s', async (_, begin) => {
  begin();
  world.run('conntrack', '-F');
  const asked = WAYS.map(({ from, ip, port, protocol }) => ({
    destination: withPort(ip, port),
    source: from === node ? 'node' : from.ip(ip.includes(':') ? 'IPv6' : 'IPv4'),
    protocol: protocol.toLowerCase(),
  }));
  const told = await world.askHere(asked);
  // What no socket may send is an error of its own.
  const works = await Promise.all(
    WAYS.map(({ from, ip, port, protocol }) => answers(from, ip, port, protocol).catch(() => false)),
  );
  const wrong = told.flatMap(({ verdict, cause }, index) => {
    const really = works[index] ? 'works' : 'fails';
    return verdict === 'unknown' || verdict === really ? [] : [`${JSON.stringify(asked[index])}: ${verdict}, ${cause}`];
  });
  expect(wrong).toEqual([]);
  expect(told.filter(({ verdict }) => verdict !== 'unknown')).not.toEqual([]);
});
