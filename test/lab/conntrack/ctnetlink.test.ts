import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IpFamily, isNotFound, parseIp } from '../../../src/core/index.ts';
import { deleteFlows, flowDeletion, flowListing, listFlows } from '../../../src/netlink/conntrack/index.ts';
import type { Netlink } from '../../../src/netlink/index.ts';
import { createHost, type Host } from '../host.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { flowText, openNetfilter } from './flows.ts';

// Real UDP flows through DNAT inside one namespace.

const UDP = 17;
const ADDRESSES = {
  IPv4: { own: '192.0.2.1', vip: '192.0.2.53', program: 'iptables-nft' },
  IPv6: { own: '2001:db8::1', vip: '2001:db8::53', program: 'ip6tables-nft' },
} as const;

let namespace: TestNamespace;
let netlink: Netlink;
let host: Host;

beforeAll(() => {
  namespace = createNamespace('ctnetlink');
  namespace.run('ip', 'link', 'set', 'lo', 'up');
  for (const { own, vip } of Object.values(ADDRESSES)) {
    for (const ip of [own, vip]) namespace.run('ip', 'address', 'add', ip, 'dev', 'lo', 'nodad');
  }
  for (const [number, program] of [
    ['192.0.2.1:7001', 'iptables-nft'],
    ['[2001:db8::1]:7001', 'ip6tables-nft'],
  ] as const) {
    const match = ['-p', 'udp', '--dport', '53', '-j', 'DNAT', '--to', number];
    namespace.run(program, '-t', 'nat', '-A', 'OUTPUT', ...match);
  }
  host = createHost({ name: 'host', namespace, ips: [ADDRESSES.IPv4.own, ADDRESSES.IPv6.own] });
  netlink = openNetfilter(namespace);
  return () => netlink.close();
});

afterAll(removeAll);

/** Nobody listens: a flow is tracked whether it is answered or not. */
async function send(ip: string, port: number, sourcePort: number): Promise<void> {
  await host.connect({ ip, port, protocol: 'UDP' }, { sourcePort, timeoutMs: 200 });
}

describe.each(['IPv4', 'IPv6'] as IpFamily[])('%s flows', (family) => {
  const { own, vip } = ADDRESSES[family];
  const texts = (listing = {}) =>
    listFlows(netlink, { family, ...listing })
      .map(flowText)
      .sort();

  beforeAll(() => deleteFlows(netlink, listFlows(netlink, { family })));

  it('are listed with where they went, all or some', async () => {
    await send(vip, 53, 4001);
    await send(own, 53, 4002);
    await send(own, 7002, 4003);
    const [first, second, third] = [
      `4001 > ${vip}:53 < ${own}:7001`,
      `4002 > ${own}:53 < ${own}:7001`,
      `4003 > ${own}:7002 < ${own}:7002`,
    ];
    expect(texts({ protocol: UDP })).toEqual([first, second, third]);
    expect(texts({ protocol: 132 })).toEqual([]);
    expect(texts({ destination: { protocol: UDP, port: 53 } })).toEqual([first, second]);
    expect(texts({ destination: { protocol: UDP, port: 53, ip: parseIp(vip) } })).toEqual([first]);
    expect(texts({ destination: { protocol: UDP, port: 54, ip: parseIp(vip) } })).toEqual([]);
    expect(texts({ filter: (protocol: number, port: number) => protocol === UDP && port === 7002 })).toEqual([third]);
  });

  it('are left out by the kernel, not only by us', () => {
    const passed = (listing: object) => netlink.dump(flowListing({ family, ...listing })).length;
    expect(passed({ protocol: UDP })).toBe(3);
    expect(passed({ protocol: 132 })).toBe(0);
    expect(passed({ destination: { protocol: UDP, port: 53 } })).toBe(2);
    // See flowListing: IPv6 addresses are not the kernel's to compare.
    expect(passed({ destination: { protocol: UDP, port: 53, ip: parseIp(vip) } })).toBe(family === 'IPv4' ? 1 : 2);
  });

  it('of one family come without those of the other', async () => {
    for (const { own: ip } of Object.values(ADDRESSES)) await send(ip, 7002, 4006);
    expect([...new Set(listFlows(netlink, { family }).map((flow) => flow.family))]).toEqual([family]);
  });

  it('are deleted one by one, and a second time without harm', () => {
    const [flow] = listFlows(netlink, { family, destination: { protocol: UDP, port: 53, ip: parseIp(vip) } });
    const before = texts({ protocol: UDP });
    deleteFlows(netlink, [flow!]);
    expect(texts({ protocol: UDP })).toEqual(before.filter((text) => text !== flowText(flow!)));
    deleteFlows(netlink, [flow!]);
    expect(() => netlink.execute(flowDeletion(flow!))).toThrow(expect.toSatisfy(isNotFound));
  });

  it('with another ID stay', async () => {
    await send(vip, 53, 4004);
    const destination = { protocol: UDP, port: 53, ip: parseIp(vip) };
    const [flow] = listFlows(netlink, { family, destination });
    deleteFlows(netlink, [{ ...flow!, id: (flow!.id ^ 1) >>> 0 }]);
    expect(texts({ destination })).toEqual([flowText(flow!)]);
    deleteFlows(netlink, [flow!]);
    expect(texts({ destination })).toEqual([]);
  });
});

describe('a flow in another zone', () => {
  it('is told by its zone and deleted there', async () => {
    namespace.run(
      'iptables-nft',
      '-t',
      'raw',
      '-A',
      'OUTPUT',
      '-p',
      'udp',
      '--sport',
      '4005',
      '-j',
      'CT',
      '--zone',
      '7',
    );
    namespace.run(
      'iptables-nft',
      '-t',
      'raw',
      '-A',
      'PREROUTING',
      '-p',
      'udp',
      '--dport',
      '4005',
      '-j',
      'CT',
      '--zone',
      '7',
    );
    await send(ADDRESSES.IPv4.own, 7002, 4005);
    const zoned = () => listFlows(netlink, { family: 'IPv4', protocol: UDP }).filter(({ zone }) => zone === 7);
    expect(zoned().map((flow) => flow.original.sourcePort)).toContain(4005);
    deleteFlows(netlink, zoned());
    expect(zoned()).toEqual([]);
  });
});
