import { describe, expect, it } from 'vitest';
import { formatIp, ipFromBytes, parseIp } from '../../core/index.ts';
import type { Destination, IpvsConnection, VirtualServer } from '../../netlink/ipvs/index.ts';
import { IP_VS_SVC_F_ONEPACKET, IP_VS_SVC_F_SCHED_MH_FALLBACK } from '../../netlink/uapi/ip-vs.ts';
import { RTN_LOCAL, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { LegacyRules } from '../iptables/index.ts';
import { KnownBytes, type Packet } from '../packet/index.ts';
import { type Host, type Origin, walkAnswer, walkNext, walkPacket } from '../walk/index.ts';
import { type IpvsReader, IpvsServers } from './ipvs-servers.ts';

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
  redirectedTo: () => undefined,
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

const FIRST = { which: 'first', isInvalid: false } as const;

/** How the kernel is set by the agent. */
const SETTINGS = {
  listRemembered: () => [],
  isTracked: true,
  forgetsDrained: true,
  reroutesAnswers: true,
  isDropping: false,
};

function walk(
  servers: readonly VirtualServer[],
  destinations: readonly Destination[],
  origin: Origin = ETH0,
  more: Partial<IpvsReader> = {},
) {
  const reader = { listServers: () => servers, listDestinations: () => destinations, ...SETTINGS, ...more };
  const ipvs = new IpvsServers(reader);
  const question = {
    protocol: 'tcp',
    source: parseIp('192.0.2.9'),
    destination: parseIp(VIP),
    destinationPort: 80,
  } as const;
  const { branches } = walkPacket(question, { origin, sources: [ipvs, MASQUERADE], host: HOST });
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

it('is not masqueraded while connection tracking does not see it', () => {
  const [way] = walk([server()], [to('10.244.1.5')], ETH0, { isTracked: false });
  expect(way).toMatchObject({ end: 'sent', to: '10.244.1.5', source: '192.0.2.9' });
});

it('gives answers the address of the virtual server before hook postrouting', () => {
  const rules = ['80', '8080'].map((port) => `-p tcp -m tcp --sport ${port} -j LOG`);
  const late = new LegacyRules({ IPv4: new Map([['mangle', new Map([['POSTROUTING', { builtIn: true, rules }]])]]) });
  const early = new LegacyRules({ IPv4: new Map([['filter', new Map([['FORWARD', { builtIn: true, rules }]])]]) });
  const [pod, client] = [parseIp('10.244.1.5'), parseIp('192.0.2.9')];
  const answer = {
    protocol: 'tcp',
    source: pod,
    sourcePort: 8080,
    destination: client,
    destinationPort: 40_000,
  } as const;
  const first = { protocol: 'tcp', source: client, destination: parseIp(VIP), destinationPort: 80 } as const;
  const flow = { first, translated: { destination: KnownBytes.of(pod.bytes) }, byIpvs: true };
  const met = (rules: LegacyRules) => {
    const ipvs = new IpvsServers({ listServers: () => [server()], listDestinations: () => [], ...SETTINGS });
    const { branches } = walkAnswer(answer, FIRST, flow, { origin: CNI0, sources: [ipvs, rules], host: HOST });
    return branches.map(({ result: { packet, steps } }) => [
      text(packet.ends.source.bytes),
      steps.map((step) => (step.source === 'iptables-legacy' ? step.rule?.number : step.source)),
    ]);
  };
  expect(met(early)).toEqual([[VIP, [2, undefined]]]);
  expect(met(late)).toEqual([[VIP, [1, undefined]]]);
});

it.each([
  [true, 'no route'],
  [false, 'sent'],
])('has answers routed anew by the mark that they have (%s): %s', (reroutesAnswers, end) => {
  const rules = ['-j MARK --set-xmark 0x77'];
  const marking = new LegacyRules({ IPv4: new Map([['mangle', new Map([['FORWARD', { builtIn: true, rules }]])]]) });
  const none = { listServers: () => [], listDestinations: () => [] };
  const ipvs = new IpvsServers({ ...none, ...SETTINGS, reroutesAnswers });
  const [source, destination] = [parseIp('10.244.1.5'), parseIp('192.0.2.9')];
  const answer = { protocol: 'tcp', source, sourcePort: 8080, destination, destinationPort: 40_000 } as const;
  const first = { protocol: 'tcp', source: destination, destination: parseIp(VIP), destinationPort: 80 } as const;
  const flow = { first, translated: { destination: KnownBytes.of(source.bytes) }, byIpvs: true };
  const isMarked = ({ mark }: Packet) => mark.equals(new Uint8Array(Uint32Array.of(0x77).buffer)) === true;
  const host: Host = {
    ...HOST,
    interfaceTo: (packet, which) => (isMarked(packet) ? 'none' : HOST.interfaceTo(packet, which)),
  };
  const { branches } = walkAnswer(answer, FIRST, flow, { origin: CNI0, sources: [ipvs, marking], host });
  expect(branches.map(({ result }) => result.end.kind)).toEqual([end]);
});

it('sends on what follows the first packet as that, and it is none that connection tracking has translated', () => {
  const rules = ['80', '8080'].map((port) => `-p tcp -m tcp --dport ${port} -m conntrack ! --ctstate DNAT -j LOG`);
  const chains = ['INPUT', 'OUTPUT'].map((name) => [name, { builtIn: true, rules }] as const);
  const filter = new LegacyRules({ IPv4: new Map([['filter', new Map(chains)]]) });
  const ipvs = new IpvsServers({ listServers: () => [], listDestinations: () => [], ...SETTINGS });
  const first = {
    protocol: 'tcp',
    source: parseIp('192.0.2.9'),
    destination: parseIp(VIP),
    destinationPort: 80,
  } as const;
  const translated = {
    destination: KnownBytes.of(parseIp('10.244.1.5').bytes),
    destinationPort: KnownBytes.of(Uint8Array.of(0x1f, 0x90)),
  };
  const { branches } = walkNext(
    { first, translated, byIpvs: true },
    { which: 'later', isInvalid: false },
    { origin: ETH0, sources: [ipvs, filter], host: HOST },
  );
  expect(branches.map(({ result }) => result.end.kind)).toEqual(['sent']);
  const met = branches[0]!.result.steps.flatMap((step) =>
    step.source === 'iptables-legacy' && step.rule ? [[step.hook, step.rule.number]] : [],
  );
  expect(met).toEqual([
    ['input', 1],
    ['output', 2],
  ]);
});

it.each([
  ['rr', 0, 'chance'],
  ['wrr', 0, 'chance'],
  ['lc', 0, 'unknown'],
  ['sh', 0, 'unknown'],
  ['mh', IP_VS_SVC_F_SCHED_MH_FALLBACK, 'unknown'],
])('whom scheduler %s takes is a %s', (scheduler, flags, kind) => {
  const ways = walk(
    [server({ scheduler, flags })],
    [to('10.244.1.5'), to('10.244.1.6'), to('10.244.1.7', 0)].slice(0, flags ? 3 : 2),
  );
  expect(ways.map(({ to, chosen }) => [to, ...chosen])).toEqual([
    ['10.244.1.5', kind],
    ['10.244.1.6', kind],
  ]);
});

it.each<[string, Partial<VirtualServer>, object, Partial<IpvsReader>]>([
  ['addresses are hashed, and one has weight 0', { scheduler: 'mh' }, { weight: 0 }, {}],
  ['one may have so many connections alone', {}, { connectionLimit: 1 }, {}],
  ['one gets packets by another way', {}, { forwarding: 3 }, {}],
  ['datagrams have no connections', { flags: IP_VS_SVC_F_ONEPACKET }, {}, {}],
  ['packets are dropped at random', {}, {}, { isDropping: true }],
])('nothing is told where %s', (_, of, destination, more) => {
  const ways = walk([server(of)], [to('10.244.1.5'), { ...to('10.244.1.6'), ...destination }], ETH0, more);
  expect(ways.map(({ end }) => end)).toEqual(['cannot tell']);
});

describe('a server with persistence', () => {
  const one = {
    protocol: 6,
    client: parseIp('192.0.2.9'),
    clientPort: 0,
    virtual: parseIp(VIP),
    virtualPort: 80,
    server: parseIp('10.244.2.7'),
    serverPort: 8080,
    state: 'NONE',
    expiresSeconds: 42,
  };
  const MARK = 0x6e70_0001;
  const ofMark = { ...one, protocol: 0, virtual: parseIp('110.112.0.1'), virtualPort: 0, serverPort: 0 };
  const persistent = server({ persistenceSeconds: 600 });
  const reached = (remembered: IpvsConnection, weight = 1, more: Partial<IpvsReader> = {}) => {
    const listRemembered = () => [remembered];
    const ways = walk([persistent], [to('10.244.1.5'), to('10.244.2.7', weight)], ETH0, { listRemembered, ...more });
    return ways.map(({ to }) => to);
  };

  it('takes the destination that it remembers for the client', () => {
    expect(reached(one)).toEqual(['10.244.2.7']);
    expect(reached({ ...one, client: parseIp('192.0.2.8') })).toEqual(['10.244.1.5', '10.244.2.7']);
    expect(reached({ ...one, virtualPort: 81 })).toEqual(['10.244.1.5', '10.244.2.7']);
    expect(reached(ofMark)).toEqual(['10.244.1.5', '10.244.2.7']);
  });

  it('remembers clients by the bits of their addresses that count', () => {
    const listServers = () => [{ ...persistent, persistenceMask: Uint8Array.of(255, 255, 0, 0) }];
    expect(reached({ ...one, client: parseIp('192.0.0.0') }, 1, { listServers })).toEqual(['10.244.2.7']);
    expect(reached(one, 1, { listServers })).toEqual(['10.244.1.5', '10.244.2.7']);
  });

  it('takes one without weight only where the kernel is not told to forget it, and none that is gone', () => {
    expect(reached(one, 0)).toEqual(['10.244.1.5']);
    expect(reached(one, 0, { forgetsDrained: false })).toEqual(['10.244.2.7']);
    expect(reached({ ...one, server: parseIp('10.244.3.1') })).toEqual(['10.244.1.5', '10.244.2.7']);
  });

  it('of port 21 remembers no port', () => {
    const key = { kind: 'address', protocol: 6, address: parseIp(VIP), port: 21 } as const;
    const ipvs = new IpvsServers({
      listServers: () => [server({ key, persistenceSeconds: 600 })],
      listDestinations: () => [to('10.244.1.5'), to('10.244.2.7')],
      ...SETTINGS,
      listRemembered: () => [{ ...one, virtualPort: 0, serverPort: 0 }],
    });
    const question = { protocol: 'tcp', source: one.client, destination: parseIp(VIP), destinationPort: 21 } as const;
    const { branches } = walkPacket(question, { origin: ETH0, sources: [ipvs], host: HOST });
    expect(branches.map(({ result }) => text(result.packet.ends.destination.bytes))).toEqual(['10.244.2.7']);
  });

  it('of a mark remembers by the mark', () => {
    const key = { kind: 'mark', family: 'IPv4', mark: MARK } as const;
    const ipvs = new IpvsServers({
      listServers: () => [server({ key, persistenceSeconds: 600 })],
      listDestinations: () => [to('10.244.1.5'), to('10.244.2.7')],
      ...SETTINGS,
      listRemembered: () => [ofMark],
    });
    const marking = new LegacyRules({
      IPv4: new Map([['mangle', new Map([['PREROUTING', { builtIn: true, rules: [`-j MARK --set-xmark ${MARK}`] }]])]]),
    });
    const question = { protocol: 'tcp', source: one.client, destination: parseIp(VIP), destinationPort: 80 } as const;
    const { branches } = walkPacket(question, { origin: ETH0, sources: [ipvs, marking], host: HOST });
    expect(branches.map(({ result }) => text(result.packet.ends.destination.bytes))).toEqual(['10.244.2.7']);
  });
});
