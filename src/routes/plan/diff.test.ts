import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseCidr, parseIp } from '../../core/index.ts';
import { keyOf, type RouteObject, textOf } from '../kernel/route-object.ts';
import { diffObjects } from './diff.ts';

const mac = (last: number) => Uint8Array.of(2, 0, 0, 0, 0, last);
const nexthop = (id: number, gateway = '10.0.0.2'): RouteObject => ({
  kind: 'nexthop',
  id,
  outInterface: 2,
  gateway: parseIp(gateway),
  onlink: false,
});
const route = (cidr: string, id: number): RouteObject => ({
  kind: 'route',
  destination: parseCidr(cidr),
  way: 'nexthop',
  id,
});
const fdb = (last: number, remote: string): RouteObject => ({
  kind: 'fdb',
  index: 3,
  mac: mac(last),
  remote: parseIp(remote),
});
const neighbour = (last: number): RouteObject => ({
  kind: 'neighbour',
  index: 3,
  ip: parseIp('10.1.0.0'),
  mac: mac(last),
});

const words = (present: RouteObject[], wanted: RouteObject[]) =>
  diffObjects(present, wanted).map(({ action, object }) => `${action} ${textOf(object)}`);

it('nothing is done where all is as it should be', () => {
  expect(words([nexthop(1), route('10.1.0.0/24', 1)], [route('10.1.0.0/24', 1), nexthop(1)])).toEqual([]);
});

it('what others refer to is made first and removed last', () => {
  const all = [route('10.1.0.0/24', 1), nexthop(1), fdb(1, '10.0.0.2'), neighbour(1)];
  expect(diffObjects([], all).map(({ object }) => object.kind)).toEqual(['neighbour', 'fdb', 'nexthop', 'route']);
  expect(diffObjects(all, []).map(({ object }) => object.kind)).toEqual(['route', 'nexthop', 'fdb', 'neighbour']);
});

it('what is different is replaced in place', () => {
  expect(words([nexthop(1)], [nexthop(1, '10.0.0.9')])).toEqual(['replace nexthop 1 via 10.0.0.9 dev 2']);
  expect(words([route('10.1.0.0/24', 1)], [route('10.1.0.0/24', 2)])).toEqual(['replace 10.1.0.0/24 nhid 2']);
});

it('a route that others added to is made anew: replaced in place it would keep that', () => {
  const wanted = route('10.1.0.0/24', 1);
  const changed = { ...wanted, additions: 'mtu 600' };
  expect(words([changed], [wanted])).toEqual(['delete 10.1.0.0/24 nhid 1 mtu 600', 'add 10.1.0.0/24 nhid 1']);
});

it('of two destinations of one MAC address the wrong ones go first', () => {
  const [good, bad, worse] = [fdb(1, '10.0.0.2'), fdb(1, '10.0.0.3'), fdb(1, '10.0.0.4')];
  expect(words([bad, good], [good])).toEqual(['delete fdb 02:00:00:00:00:01 dev 3 dst 10.0.0.3']);
  expect(words([bad, worse], [good])).toEqual([
    'delete fdb 02:00:00:00:00:01 dev 3 dst 10.0.0.3',
    'delete fdb 02:00:00:00:00:01 dev 3 dst 10.0.0.4',
    'add fdb 02:00:00:00:00:01 dev 3 dst 10.0.0.2',
  ]);
});

it('an IPv6 route changes over to the tunnel in two steps: the old one is in the way of its gateway', () => {
  const destination = parseCidr('fd00:1::/64');
  const direct: RouteObject = {
    kind: 'route',
    destination,
    way: 'gateway',
    gateway: parseIp('fd00::2'),
    outInterface: 2,
    onlink: false,
  };
  const tunnel: RouteObject = { ...direct, gateway: parseIp('fd00:1::'), outInterface: 3, onlink: true };
  expect(diffObjects([direct], [tunnel]).map(({ action }) => action)).toEqual(['delete', 'add']);
  expect(diffObjects([tunnel], [direct]).map(({ action }) => action)).toEqual(['replace']);
});

it('leads from any state to any other', () => {
  const object = fc.oneof(
    fc.tuple(fc.nat(2), fc.constantFrom('10.0.0.2', '10.0.0.3')).map(([id, gateway]) => nexthop(id, gateway)),
    fc.tuple(fc.nat(2), fc.nat(2)).map(([n, id]) => route(`10.${n}.0.0/16`, id)),
    fc.tuple(fc.nat(2), fc.constantFrom('10.0.0.2', '10.0.0.3')).map(([n, remote]) => fdb(n, remote)),
  );
  const state = fc.uniqueArray(object, { selector: keyOf });
  fc.assert(
    fc.property(state, state, (present, wanted) => {
      const held = new Map(present.map((one) => [keyOf(one), textOf(one)]));
      for (const { action, object } of diffObjects(present, wanted)) {
        expect(held.has(keyOf(object))).toBe(action !== 'add');
        if (action === 'delete') held.delete(keyOf(object));
        else held.set(keyOf(object), textOf(object));
      }
      expect(held).toEqual(new Map(wanted.map((one) => [keyOf(one), textOf(one)])));
    }),
  );
});
