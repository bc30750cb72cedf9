import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { isNotFound, type KernelError, parseIp } from '../../../src/core/index.ts';
import { Netlink } from '../../../src/netlink/index.ts';
import {
  addMember,
  deleteIpSet,
  getSetTypeRevision,
  type IpSet,
  listIpSets,
  listMembers,
  newIpSet,
  type SetMember,
  swapIpSets,
} from '../../../src/netlink/ipset/index.ts';
import { NETLINK_NETFILTER } from '../../../src/netlink/uapi/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';

const TCP = 6;

let namespace: TestNamespace;
let netlink: Netlink;

beforeEach(() => {
  removeAll();
  namespace = createNamespace('ipset');
  netlink = inNetns(namespace.path, () => Netlink.open(NETLINK_NETFILTER));
  return () => netlink.close();
});
afterAll(removeAll);

function make(given: Partial<IpSet> & Pick<IpSet, 'name' | 'type'>): IpSet {
  const set: IpSet = {
    family: given.type === 'bitmap:port' ? undefined : 'IPv4',
    maxElements: given.type === 'bitmap:port' ? undefined : 1024,
    ports: given.type === 'bitmap:port' ? [0, 65535] : undefined,
    marks: false,
    comments: false,
    ...given,
  };
  netlink.execute(newIpSet(set, getSetTypeRevision(netlink, set.type, set.family)));
  return set;
}

/** What the ipset program says. */
const shown = (...args: string[]) => namespace.run('ipset', ...args);
const net = (address: string, second: string, secondPrefixLength?: number): SetMember => ({
  address: parseIp(address),
  protocol: TCP,
  port: 80,
  second: parseIp(second),
  ...(secondPrefixLength !== undefined && { secondPrefixLength }),
});

describe('a set', () => {
  const SETS: readonly (readonly [Partial<IpSet> & Pick<IpSet, 'name' | 'type'>, SetMember, string])[] = [
    [{ name: 'A', type: 'hash:ip' }, { address: parseIp('192.0.2.1') }, '192.0.2.1'],
    [
      { name: 'B', type: 'hash:ip,port', family: 'IPv6' },
      { address: parseIp('fd00::1'), protocol: TCP, port: 80 },
      'fd00::1,tcp:80',
    ],
    [{ name: 'C', type: 'hash:ip,port,ip' }, net('10.0.0.1', '10.0.0.2'), '10.0.0.1,tcp:80,10.0.0.2'],
    [{ name: 'D', type: 'hash:ip,port,net' }, net('10.0.0.1', '10.2.0.0', 16), '10.0.0.1,tcp:80,10.2.0.0/16'],
    [
      { name: 'E', type: 'hash:ip,port,net', family: 'IPv6' },
      net('fd00::1', 'fd00:2::', 32),
      'fd00::1,tcp:80,fd00:2::/32',
    ],
    [{ name: 'F', type: 'bitmap:port' }, { port: 30080 }, '30080'],
    [
      { name: 'G', type: 'hash:ip,port', marks: true, comments: true, timeoutSeconds: 0 },
      { address: parseIp('10.0.0.1'), protocol: TCP, port: 80, mark: 0x4000, comment: 'a "b"', timeoutSeconds: 0 },
      '10.0.0.1,tcp:80 timeout 0 comment "a b" skbmark 0x4000',
    ],
  ];

  it.each(SETS)(
    '$type and its members come back as they were made, and are what ipset shows',
    (given, member, text) => {
      const plain = member.comment === undefined ? member : { ...member, comment: 'a b' };
      const set = make(given);
      netlink.execute(addMember(set.name, plain));
      expect(listIpSets(netlink)).toEqual([set]);
      expect(listMembers(netlink, set.name)).toEqual([plain]);
      expect(shown('save', set.name).trimEnd().split('\n').at(-1)).toBe(`add ${set.name} ${text}`);
    },
  );

  it('made by ipset reads the same', () => {
    shown('create', 'X', 'hash:ip,port', 'timeout', '300', 'counters');
    shown('add', 'X', '10.0.0.1,udp:53', 'timeout', '0');
    expect(listIpSets(netlink)).toEqual([
      {
        name: 'X',
        type: 'hash:ip,port',
        family: 'IPv4',
        maxElements: 65536,
        ports: undefined,
        marks: false,
        comments: false,
        timeoutSeconds: 300,
      },
    ]);
    expect(listMembers(netlink, 'X')).toEqual([
      { address: parseIp('10.0.0.1'), protocol: 17, port: 53, timeoutSeconds: 0 },
    ]);
  });

  it('is swapped and destroyed', () => {
    make({ name: 'A', type: 'hash:ip' });
    make({ name: 'B', type: 'hash:ip' });
    netlink.execute(addMember('A', { address: parseIp('10.0.0.1') }));
    netlink.execute(swapIpSets('A', 'B'));
    expect([listMembers(netlink, 'A').length, listMembers(netlink, 'B').length]).toEqual([0, 1]);
    netlink.execute(deleteIpSet('A'));
    expect(listIpSets(netlink).map(({ name }) => name)).toEqual(['B']);
    netlink.execute(deleteIpSet('B'));
    expect(listIpSets(netlink)).toEqual([]);
  });
});

describe('a refusal', () => {
  const refusal = (fn: () => void): KernelError => {
    try {
      fn();
    } catch (error) {
      return error as KernelError;
    }
    throw new Error('It was not refused');
  };

  it('is told in ipset’s own terms', () => {
    make({ name: 'A', type: 'hash:ip', maxElements: 1 });
    make({ name: 'B', type: 'hash:ip' });
    make({ name: 'P', type: 'bitmap:port' });
    const run = (request: ReturnType<typeof addMember>) => refusal(() => netlink.execute(request)).errnoName;
    expect(run(swapIpSets('A', 'P'))).toBe('IPSET_ERR_TYPE_MISMATCH');
    expect(run(addMember('A', { address: parseIp('10.0.0.1'), comment: 'no' }))).toBe('IPSET_ERR_COMMENT');
    expect(run(addMember('A', { address: parseIp('10.0.0.1'), mark: 1 }))).toBe('IPSET_ERR_SKBINFO');
    expect(run(addMember('A', { address: parseIp('10.0.0.1'), timeoutSeconds: 9 }))).toBe('IPSET_ERR_TIMEOUT');
    namespace.run('iptables-legacy', '-A', 'INPUT', '-m', 'set', '--match-set', 'A', 'src', '-j', 'DROP');
    expect(run(deleteIpSet('A'))).toBe('IPSET_ERR_BUSY');
    expect(refusal(() => getSetTypeRevision(netlink, 'hash:nonsense', 'IPv4')).errnoName).toBe('IPSET_ERR_FIND_TYPE');
  });

  it('for a set that is not there is ENOENT, for a name that is taken EEXIST', () => {
    const set = make({ name: 'A', type: 'hash:ip' });
    expect(refusal(() => make(set)).errnoName).toBe('EEXIST');
    for (const request of [deleteIpSet('B'), addMember('B', {})]) {
      expect(isNotFound(refusal(() => netlink.execute(request)))).toBe(true);
    }
    expect(isNotFound(refusal(() => listMembers(netlink, 'B')))).toBe(true);
  });
});
