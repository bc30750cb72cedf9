import { describe, expect, it } from 'vitest';
import { expectSafeDecoder } from '../../../test/fakes/decoder-properties.ts';
import { FakeNetlink, frame, refuse } from '../../../test/fakes/fake-netlink.ts';
import { capturedAsVersion6 } from '../../../test/fakes/ipset-golden.ts';
import { capturedPayload, wireHex } from '../../../test/fakes/netlink-golden.ts';
import { Netlink } from '../netlink.ts';
import { decodeSetTypeRevision } from './capabilities.ts';
import { decodeIpSet, deleteIpSet, getSetName, type IpSet, newIpSet, swapIpSets } from './set.ts';

const HASH: IpSet = {
  name: 'T2',
  type: 'hash:ip,port',
  family: 'IPv4',
  maxElements: undefined,
  ports: undefined,
  marks: false,
};

describe('the bytes of ipset 7.17 (strace -e write=all)', () => {
  it('make a set of addresses and ports: ipset create T2 hash:ip,port family inet', () => {
    expect(wireHex(newIpSet(HASH, 7))).toBe(
      capturedAsVersion6(
        '4c000000020605061abf006b00000000' +
          '02000000050001000700000007000200543200001100030068617368' +
          '3a69702c706f7274000000000500040007000000050005000200000004000780',
      ),
    );
  });

  it('make a set with timeouts, marks and comments: ipset create KUBE6 hash:ip,port,ip family inet6 timeout 600 …', () => {
    const set: IpSet = {
      name: 'KUBE6',
      type: 'hash:ip,port,ip',
      family: 'IPv6',
      maxElements: undefined,
      ports: undefined,
      marks: true,
      comments: true,
      timeoutSeconds: 600,
    };
    // The capture has counters too (0x08 of the flags).
    expect(wireHex(newIpSet(set, 5))).toBe(
      capturedAsVersion6(
        '600000000206050615bf006b000000000200000005000100070000000a0002004b5542453600000014000300' +
          '686173683a69702c706f72742c6970000500040006000000050005000a0000001400078008000640000002580800084000000058',
      )
        .replace('0800084000000058', '0800084000000050')
        .replace('0500040006', '0500040005'),
    );
  });

  it('make a set of ports: ipset create KUBE-NODE-PORT-TCP bitmap:port range 0-65535', () => {
    const set: IpSet = {
      name: 'KUBE-NODE-PORT-TCP',
      type: 'bitmap:port',
      family: undefined,
      maxElements: undefined,
      ports: [0, 65535],
      marks: false,
    };
    expect(wireHex(newIpSet(set, 3))).toBe(
      capturedAsVersion6(
        '680000000206050615bf006b00000000020000000500010007000000170002004b5542452d4e4f44452d504f52542d544350000010000300' +
          '6269746d61703a706f7274000500040003000000050005000000000014000780060004400000000006000540ffff0000',
      ),
    );
  });

  it.each([
    [
      'swap KUBE-CLUSTER-IP T2',
      swapIpSets('KUBE-CLUSTER-IP', 'T2'),
      '38000000060605001abf006b00000000020000000500010007000000140002004b5542452d434c55535445522d4950000700030054320000',
    ],
    ['destroy T3', deleteIpSet('T3'), '24000000030605021dbf006b000000000200000005000100070000000700020054330000'],
  ])('ipset %s', (_command, request, captured) => {
    expect(wireHex(request)).toBe(capturedAsVersion6(captured));
  });
});

// ipset list -t, after the commands above.
const LISTED_HASH =
  'a0000000070602001bbf006bcb7900000200000005000100070000000a0002004b5542453600000014000300686173683a69702c706f72742c6970' +
  '000500050' +
  '00a000000050004000600000006000b40000100004c00078008001240000004000800134000010000050015000c000000080011406599574008001940' +
  '0000000008001a40000001cc080018400000000108000640000002580800084000000058';
const LISTED_BITMAP =
  '88000000070602001bbf006bcb790000020000000500010007000000170002004b5542452d4e4f44452d504f52542d54435000001000030062697' +
  '46d61703a706f7274000500050000000000050004000300000006000b40000200002c000780060004400000000006000540ffff000008001940000000' +
  '0008001a40000020480800184000000001';
const TYPE =
  '480000000d06000013bf006b1876000002000000050001000700000011000300686173683a69702c706f727400000000050005000200000005000400' +
  '0700000005000a0000000000';

describe('what the kernel answers', () => {
  it('is a set of addresses and ports', () => {
    expect(decodeIpSet(capturedPayload(LISTED_HASH))).toEqual({
      name: 'KUBE6',
      type: 'hash:ip,port,ip',
      family: 'IPv6',
      maxElements: 65536,
      ports: undefined,
      marks: true,
      comments: true,
      timeoutSeconds: 600,
    });
  });

  it('is a set of ports', () => {
    expect(decodeIpSet(capturedPayload(LISTED_BITMAP))).toEqual({
      name: 'KUBE-NODE-PORT-TCP',
      type: 'bitmap:port',
      family: undefined,
      maxElements: undefined,
      ports: [0, 65535],
      marks: false,
      comments: false,
      timeoutSeconds: undefined,
    });
  });

  it('is the revision of a type that it has', () => {
    expect(decodeSetTypeRevision(capturedPayload(TYPE))).toBe(7);
  });

  it('is the name of a set by its number, where it has one', () => {
    const asked: string[] = [];
    const [named, none] = [9, 10];
    const fake = new FakeNetlink((requests) =>
      requests.map((one) => {
        asked.push(Buffer.from(one.payload).toString('hex'));
        const isNamed = one.payload.at(-3) === named;
        return frame(isNamed ? { ...one, payload: capturedPayload(LISTED_BITMAP) } : refuse(one, 2));
      }),
    );
    const netlink = new Netlink(fake);
    expect(getSetName(netlink, named)).toBe('KUBE-NODE-PORT-TCP');
    expect(getSetName(netlink, none)).toBeUndefined();
    // Version 7 of the protocol; the number is in network byte order.
    expect(asked).toEqual(['09', '0a'].map((number) => `02000000050001000700000006000b4000${number}0000`));
  });

  it('is a value or ERR_NETLINK_DECODE for any bytes', () => {
    expectSafeDecoder(decodeIpSet, [capturedPayload(LISTED_HASH), capturedPayload(LISTED_BITMAP)]);
    expectSafeDecoder((bytes) => ({ revision: decodeSetTypeRevision(bytes) }), [capturedPayload(TYPE)]);
  });

  it.each([
    [4103, /IPSET_CMD_DESTROY "T3": the member is already there.*\(IPSET_ERR_EXIST\)/],
    [4108, /rules or other sets use the set \(IPSET_ERR_REFERENCED\)/],
    [4352, /the set is full.*\(IPSET_ERR_HASH_FULL\)/],
    [2, /no such file or directory \(ENOENT\)/],
  ])('is an errno in words: %d', (errno, words) => {
    const netlink = new Netlink(new FakeNetlink((requests) => [frame(...requests.map((one) => refuse(one, errno)))]));
    expect(() => netlink.execute(deleteIpSet('T3'))).toThrow(words);
  });
});
