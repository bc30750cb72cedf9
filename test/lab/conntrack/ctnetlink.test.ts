import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IpFamily, isNotFound, parseIp } from '../../../src/core/index.ts';
import { deleteFlows, flowDeletion, listFlows, type Netlink } from '../../../src/netlink/index.ts';
import { createHost, type Host } from '../host.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { flowText, openNetfilter } from './flows.ts';

// Real UDP flows through DNAT inside one namespace; /proc/net/nf_conntrack, where the kernel has it, and the traffic itself
// are the second opinion.

const UDP = 17;
const ADDRESSES = {
  IPv4: { own: '192.0.2.1', vip: '192.0.2.53', program: 'iptables-nft' },
  IPv6: { own: '2001:db8::1', vip: '2001:db8::53', program: 'ip6tables-nft' },
} as const;

let namespace: TestNamespace;
let netlink: Netlink;
let host: Host;

beforeAll(async () => {
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
  for (const port of [7001, 7002]) await host.serve({ port, protocol: 'UDP' });
  netlink = openNetfilter(namespace);
  return () => netlink.close();
});

afterAll(removeAll);

async function send(ip: string, port: number, sourcePort: number): Promise<void> {
  expect(await host.connect({ ip, port, protocol: 'UDP' }, { sourcePort })).toMatchObject({ kind: 'answered' });
}

describe.each(['IPv4', 'IPv6'] as IpFamily[])('%s flows', (family) => {
  const { own, vip } = ADDRESSES[family];
  const texts = (listing = {}) =>
    listFlows(netlink, { family, ...listing })
      .map(flowText)
      .sort();

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
    const destination = { protocol: UDP, port: 53, ip: parseIp(vip) };
    let asked = 0;
    listFlows(netlink, { family, destination, filter: () => ++asked > 0 });
    expect(asked).toBe(1);
    const other = family === 'IPv4' ? 'IPv6' : 'IPv4';
    expect(listFlows(netlink, { family }).filter((flow) => flow.family === other)).toEqual([]);
  });

  it('are deleted one by one, and a second time without harm', () => {
    const [flow] = listFlows(netlink, { family, destination: { protocol: UDP, port: 53, ip: parseIp(vip) } });
    const before = texts({ protocol: UDP });
    deleteFlows(netlink, [flow!]);
    expect(texts({ protocol: UDP })).toEqual(before.filter((text) => text !== flowText(flow!)));
    deleteFlows(netlink, [flow!]);
    expect(() => netlink.execute(flowDeletion(flow!))).toThrow(expect.toSatisfy(isNotFound));
  });

  it('that were begun anew since they were listed stay', async () => {
    await send(vip, 53, 4004);
    const destination = { protocol: UDP, port: 53, ip: parseIp(vip) };
    const [old] = listFlows(netlink, { family, destination });
    deleteFlows(netlink, [old!]);
    await send(vip, 53, 4004);
    deleteFlows(netlink, [old!]);
    expect(texts({ destination })).toEqual([flowText(old!)]);
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
    await host.connect({ ip: ADDRESSES.IPv4.own, port: 7002, protocol: 'UDP' }, { sourcePort: 4005, timeoutMs: 500 });
    const zoned = () => listFlows(netlink, { family: 'IPv4', protocol: UDP }).filter(({ zone }) => zone === 7);
    expect(zoned().map((flow) => flow.original.sourcePort)).toContain(4005);
    deleteFlows(netlink, zoned());
    expect(zoned()).toEqual([]);
  });
});
