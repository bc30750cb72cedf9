import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatCidr, formatIp, parseAddressWithPrefix, parseCidr, parseIp } from '../../../src/core/index.ts';
import type { Netlink } from '../../../src/netlink/index.ts';
import {
  deleteLink,
  deleteNeighbour,
  deleteNexthop,
  getLink,
  type NetworkEvent,
  type NetworkInterest,
  newAddress,
  newBridge,
  newNeighbour,
  newNexthop,
  newRoute,
  setLink,
  watchNetwork,
} from '../../../src/netlink/route/index.ts';
import { RTN_BLACKHOLE } from '../../../src/netlink/uapi/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { mac, openIn } from './witness.ts';

const OURS = 80;

let node: TestNamespace;
let netlink: Netlink;
let index: number;
let events: NetworkEvent[];
let watch: ReturnType<typeof watchNetwork> | undefined;

beforeEach(async () => {
  node = createNamespace('watch');
  netlink = openIn(node);
  netlink.execute(newBridge({ name: 'cni0', mac: mac(1).bytes, up: true }));
  node.run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth1');
  netlink.execute(setLink({ name: 'eth0' }, { up: true }), setLink({ name: 'eth1' }, { up: true }));
  index = getLink(netlink, { name: 'eth0' })!.index;
  netlink.execute(
    newAddress({ index, ...parseAddressWithPrefix('10.1.0.1/16') }),
    newAddress({ index, ...parseAddressWithPrefix('fd00::1/64') }),
  );
  // It is announced again when its link, which takes its time, is up.
  await expect.poll(() => node.run('ip', 'address', 'show', 'dev', 'eth0', 'tentative')).toBe('');
  events = [];
});

afterEach(() => {
  watch?.close();
  netlink.close();
  removeAll();
});

function follow(interest: NetworkInterest, options: { readonly bufferBytes?: number } = {}): void {
  watch = inNetns(node.path, () => watchNetwork(interest, (event) => events.push(event), options));
}

/** What was told, in short. */
function short(event: NetworkEvent): string {
  if (event.kind === 'lost') return 'lost';
  const verb = event.deleted ? 'deleted' : 'new';
  switch (event.kind) {
    case 'link':
      return `${verb} link ${event.link.name} ${event.link.up ? 'up' : 'down'}`;
    case 'address':
      return `${verb} address ${formatIp(event.address.address)}`;
    case 'route':
      return `${verb} route ${formatCidr(event.route.destination)}`;
    case 'nexthop':
      return `${verb} nexthop ${event.nexthop.id}`;
    case 'neighbour':
      return `${verb} ${event.neighbour.family} neighbour ${event.neighbour.ip ? formatIp(event.neighbour.ip) : ''}`;
    default:
      return event satisfies never;
  }
}

const blackholes = (count: number, protocol: number) =>
  Array.from({ length: count }, (_, i) =>
    newRoute({
      destination: { address: parseIp(`10.${20 + (i >> 8)}.${i & 0xff}.0`), prefixLength: 24 },
      type: RTN_BLACKHOLE,
      protocol,
    }),
  );

describe('a watch over the network', () => {
  it('tells what others change, of both families', async () => {
    follow({ links: true, protocols: [OURS], neighbourLinks: [index] });
    netlink.execute(
      newNexthop({ id: 7, gateway: parseIp('10.1.0.2'), outInterface: index, protocol: OURS }),
      newRoute({ destination: parseCidr('10.2.0.0/24'), nexthopId: 7, protocol: OURS }),
      newRoute({ destination: parseCidr('fd02::/64'), outInterface: index, protocol: OURS }),
      newNeighbour({ index, ip: parseIp('10.1.0.2'), lladdr: mac(2).bytes }),
      newNeighbour({ index, ip: parseIp('fd00::2'), lladdr: mac(2).bytes }),
    );
    node.run('ip', 'route', 'del', '10.2.0.0/24');
    netlink.execute(
      deleteNexthop(7),
      deleteNeighbour({ index, ip: parseIp('10.1.0.2') }),
      setLink(index, { mtu: 1400 }),
    );
    await expect
      .poll(() => events.map(short))
      .toEqual(
        expect.arrayContaining([
          'new nexthop 7',
          'new route 10.2.0.0/24',
          'new route fd02::/64',
          'new IPv4 neighbour 10.1.0.2',
          'new IPv6 neighbour fd00::2',
          'deleted route 10.2.0.0/24',
          'deleted nexthop 7',
          'deleted IPv4 neighbour 10.1.0.2',
          'new link eth0 up',
        ]),
      );
    expect(events.find(({ kind }) => kind === 'route')).toMatchObject({ route: { nexthopId: 7, protocol: OURS } });
    expect(events.find(({ kind }) => kind === 'nexthop')).toMatchObject({ nexthop: { gateway: parseIp('10.1.0.2') } });
  });

  it('tells of addresses that are good everywhere, and not of those that each link has', async () => {
    follow({ addresses: true, exceptFrom: [netlink.portId] });
    node.run('ip', 'address', 'del', '10.1.0.1/16', 'dev', 'eth0');
    node.run('ip', 'address', 'add', 'fe80::99/64', 'dev', 'cni0', 'nodad');
    node.run('ip', 'address', 'add', '10.1.0.1/16', 'dev', 'cni0');
    node.run('ip', 'address', 'add', 'fd00::5/64', 'dev', 'cni0', 'nodad');
    await expect
      .poll(() => events.map(short))
      .toEqual(['deleted address 10.1.0.1', 'new address 10.1.0.1', 'new address fd00::5']);
  });

  it('takes a port that leaves its bridge for no deleted link', async () => {
    node.run('ip', 'link', 'add', 'port0', 'master', 'cni0', 'type', 'veth', 'peer', 'name', 'peer0');
    follow({ links: true });
    node.run('ip', 'link', 'set', 'port0', 'nomaster');
    netlink.execute(deleteLink({ name: 'port0' }));
    await expect.poll(() => events.map(short)).toContain('deleted link port0 down');
    expect(
      events.filter((event) => event.kind === 'link' && event.deleted && event.link.name === 'port0'),
    ).toHaveLength(1);
  });

  it('hears nothing of thousands of foreign routes, nor of its own changes', async () => {
    // Room for hardly one message: that the others were dropped before, and not lost, shows in what comes.
    follow({ protocols: [OURS], exceptFrom: [netlink.portId] }, { bufferBytes: 4096 });
    const other = openIn(node);
    other.execute(...blackholes(5000, 4));
    netlink.execute(newRoute({ destination: parseCidr('10.2.0.0/24'), outInterface: index, protocol: OURS }));
    other.execute(newRoute({ destination: parseCidr('10.3.0.0/24'), outInterface: index, protocol: OURS }));
    await expect.poll(() => events.map(short)).toEqual(['new route 10.3.0.0/24']);
    other.close();
  });

  it('changes its interest without losing what waits', async () => {
    follow({ protocols: [OURS] });
    netlink.execute(newRoute({ destination: parseCidr('10.2.0.0/24'), outInterface: index, protocol: OURS }));
    watch!.narrow({ neighbourLinks: [index] });
    netlink.execute(newRoute({ destination: parseCidr('10.3.0.0/24'), outInterface: index, protocol: OURS }));
    netlink.execute(newNeighbour({ index, ip: parseIp('10.1.0.2'), lladdr: mac(2).bytes }));
    await expect.poll(() => events.map(short)).toEqual(['new route 10.2.0.0/24', 'new IPv4 neighbour 10.1.0.2']);
  });

  it('says when events were lost, and goes on', async () => {
    follow({ protocols: [OURS] }, { bufferBytes: 20_000 });
    netlink.execute(...blackholes(5000, OURS));
    await expect.poll(() => events.map(short)).toContain('lost');
    events.length = 0;
    netlink.execute(newRoute({ destination: parseCidr('fd02::/64'), outInterface: index, protocol: OURS }));
    await expect.poll(() => events.map(short)).toContain('new route fd02::/64');
  });

  it('is silent once closed', async () => {
    follow({ protocols: [OURS] });
    watch!.close();
    watch!.close();
    netlink.execute(...blackholes(3, OURS));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(events).toEqual([]);
  });
});
