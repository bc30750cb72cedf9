import { expect, it } from 'vitest';
import { formatIp, ipFromBytes, parseIp } from '../../core/index.ts';
import type { Destination, VirtualServer } from '../../netlink/ipvs/index.ts';
import { RTN_LOCAL, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { LegacyRules } from '../iptables/index.ts';
import { type Host, type Origin, walkPacket } from '../walk/index.ts';
import { IpvsServers } from './ipvs-servers.ts';

const ETH0 = { index: 2, name: 'eth0' };
const CNI0 = { index: 3, name: 'cni0' };
const VIP = '10.96.0.10';
const server = (more: Partial<VirtualServer> = {}): VirtualServer => ({
  key: { kind: 'address', protocol: 6, address: parseIp(VIP), port: 80 },
  scheduler: 'rr',
  flags: 0,
  persistenceSeconds: 0,
  ...more,
});
const to = (address: string, weight = 1): Destination => ({ address: parseIp(address), port: 8080, weight });
const text = (bytes: Uint8Array) => formatIp(ipFromBytes(bytes));

/** Node 192.0.2.1 with kube-ipvs0, pods behind cni0. */
const HOST: Host = {
  addressType: ({ bytes }) => ([VIP, '192.0.2.1'].includes(text(bytes)) ? RTN_LOCAL : RTN_UNICAST),
  interfaceTo: ({ ends }, which) => (text(ends[which].bytes).startsWith('10.244.') ? CNI0 : ETH0),
  addressOn: () => parseIp('192.0.2.1').bytes,
};

const MASQUERADE = new LegacyRules({
  IPv4: new Map([
    [
      'nat',
      new Map([
        ['POSTROUTING', { builtIn: true, rules: ['-p tcp -m conntrack --ctorigdst 10.96.0.0/16 -j MASQUERADE'] }],
      ]),
    ],
  ]),
});

function walk(servers: readonly VirtualServer[], destinations: readonly Destination[], origin: Origin = ETH0) {
  const ipvs = new IpvsServers({ listServers: () => servers, listDestinations: () => destinations });
  const question = {
    protocol: 'tcp',
    source: parseIp('192.0.2.9'),
    destination: parseIp(VIP),
    destinationPort: 80,
  } as const;
  const { branches } = walkPacket(question, origin, [ipvs, MASQUERADE], HOST);
  return branches.map(({ result, choices }) => ({
    end: result.end.kind,
    to: text(result.packet.ends.destination.bytes),
    source: text(result.packet.ends.source.bytes),
    port: [...result.packet.ends.destinationPort.bytes],
    chosen: choices.map(({ kind }) => kind),
    hooks: result.steps.map(({ source, hook }) => `${source} ${hook}`),
  }));
}

it.each([ETH0, 'this host'] as const)(
  'goes to each destination that has a weight, and on to the rules of postrouting',
  (origin) => {
    const ways = walk([server()], [to('10.244.1.5'), to('10.244.1.6', 0), to('10.244.2.7')], origin);
    expect(ways.map(({ to }) => to)).toEqual(['10.244.1.5', '10.244.2.7']);
    for (const way of ways) {
      expect(way).toMatchObject({ end: 'sent', source: '192.0.2.1', port: [0x1f, 0x90], chosen: ['chance'] });
      expect(way.hooks).toEqual([`ipvs ${origin === 'this host' ? 'output' : 'input'}`, 'iptables-legacy postrouting']);
    }
  },
);

it('delivers here what goes to this host', () => {
  expect(walk([server()], [to('192.0.2.1')])).toMatchObject([
    { end: 'delivered', to: '192.0.2.1', source: '192.0.2.9' },
  ]);
});

it('refuses what no destination takes, and leaves alone what is no virtual server', () => {
  expect(walk([server()], [to('10.244.1.5', 0)])).toMatchObject([{ end: 'reject' }]);
  expect(walk([], [])).toMatchObject([{ end: 'delivered', to: VIP }]);
});

it('cannot tell whom a server with persistence remembers', () => {
  const ways = walk([server({ persistenceSeconds: 600 })], [to('10.244.1.5'), to('10.244.2.7')]);
  expect(ways.map(({ chosen }) => chosen)).toEqual([['unknown'], ['unknown']]);
});
