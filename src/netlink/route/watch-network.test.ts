import { describe, expect, it } from 'vitest';
import { frame } from '../../../test/fakes/fake-netlink.ts';
import { parseCidr, parseIp } from '../../core/index.ts';
import type { NetlinkRequest } from '../message.ts';
import { RTM_DELLINK, RTM_DELNEIGH, RTM_DELNEXTHOP, RTM_DELROUTE } from '../uapi/rtnetlink.ts';
import { newDummy } from './dummy.ts';
import { newNeighbour } from './neighbour.ts';
import { newNexthop } from './nexthop.ts';
import { newRoute } from './route.ts';
import { eventsOf } from './watch-network.ts';

const message = ({ type, payload }: Pick<NetlinkRequest, 'type' | 'payload'>) => ({
  type,
  flags: 0,
  sequence: 0,
  portId: 0,
  payload,
});
const gateway = parseIp('10.1.0.2');
const destination = parseCidr('fd02::/64');
const link = newDummy('d0');
const route = newRoute({ destination, outInterface: 4, protocol: 80 });
const nexthop = newNexthop({ id: 7, gateway, outInterface: 4 });
const neighbour = newNeighbour({ index: 4, ip: gateway, lladdr: Uint8Array.of(2, 0, 0, 0, 0, 1) });

describe('eventsOf', () => {
  it('tells objects as they are, and as they were', () => {
    expect(eventsOf(frame(...[link, route, nexthop, neighbour].map(message)))).toEqual([
      { kind: 'link', deleted: false, link: expect.objectContaining({ name: 'd0', kind: 'dummy' }) },
      { kind: 'route', deleted: false, route: expect.objectContaining({ destination, protocol: 80 }) },
      { kind: 'nexthop', deleted: false, nexthop: expect.objectContaining({ id: 7, gateway }) },
      { kind: 'neighbour', deleted: false, neighbour: expect.objectContaining({ ip: gateway, index: 4 }) },
    ]);
    const gone = [
      { ...link, type: RTM_DELLINK },
      { ...route, type: RTM_DELROUTE },
      { ...nexthop, type: RTM_DELNEXTHOP },
      { ...neighbour, type: RTM_DELNEIGH },
    ];
    expect(eventsOf(frame(...gone.map(message)))).toEqual(
      ['link', 'route', 'nexthop', 'neighbour'].map((kind) => expect.objectContaining({ kind, deleted: true })),
    );
  });

  it('leaves out messages of other types', () => {
    expect(eventsOf(frame(message({ type: 20, payload: new Uint8Array(8) })))).toEqual([]);
  });

  it('takes what it cannot read for lost', () => {
    expect(eventsOf(Uint8Array.of(1, 2, 3))).toEqual([{ kind: 'lost' }]);
    expect(eventsOf(frame(message({ ...route, payload: route.payload.subarray(0, 13) })))).toEqual([{ kind: 'lost' }]);
  });
});
