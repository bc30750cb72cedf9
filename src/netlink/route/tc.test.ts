import { describe, expect, it } from 'vitest';
import { expectSafeDecoder } from '../../../test/fakes/decoder-properties.ts';
import { capturedHex, wireHex } from '../../../test/fakes/netlink-golden.ts';
import { TC_H_ROOT } from '../uapi/pkt-sched.ts';
import { decodeIngressFilter, redirectIngress } from './tc-filter.ts';
import { newIfb } from './tc-ifb.ts';
import { slowestOf } from './tc-limits.ts';
import { decodeQdisc, deleteIngressQdisc, newIngressQdisc, setTokenBucket } from './tc-qdisc.ts';

// Captured from iproute2 6.1.0 with `strace -e trace=sendmsg -e write=all <command>` in a namespace where v0 has index 3
// and ifb1 index 4. iproute2 adds rate tables to a tbf, which no kernel since 3.8 reads; those bytes were written by a C
// program with the structs of <linux/pkt_sched.h>.

describe('traffic control requests', () => {
  it('a device to redirect to', () => {
    // ip link add ifb1 mtu 1450 up type ifb
    const captured =
      '4000000010000506a5b5006b000000000000000000000000010000000100000008000400aa050000090003006966623100000000' +
      '0c0012000700010069666200';
    expect(wireHex(newIfb({ name: 'ifb1', mtu: 1450 }))).toBe(capturedHex(captured));
  });

  it('a token bucket', () => {
    const expected =
      '60000000240005050000000000000000000000000300000000000100ffffffff0000000008000100746266003400020028000100' +
      '000100000000000040420f0000000000000000000000000028a0000090d003000000000008000600803e0000';
    expect(wireHex(setTokenBucket(3, { rate: 1_000_000, burst: 16_000, limit: 41_000 }))).toBe(expected);
  });

  it('a token bucket faster than 32 bits can say', () => {
    const expected =
      '6c000000240005050000000000000000000000000300000000000100ffffffff0000000008000100746266004000020028000100' +
      '0001000000000000ffffffff00000000000000000000000000943577b4c40400000000000c00040000f2052a01000000' +
      '0800060000e1f505';
    const bucket = { rate: 5_000_000_000, burst: 100_000_000, limit: 2_000_000_000 };
    expect(wireHex(setTokenBucket(3, bucket))).toBe(expected);
  });

  it('an ingress qdisc', () => {
    // tc qdisc add dev v0 ingress
    const captured = '300000002400050642b6006b0000000000000000030000000000fffff1ffffff000000000c000100696e677265737300';
    expect(wireHex(newIngressQdisc(3))).toBe(capturedHex(captured));
  });

  it('its end', () => {
    // tc qdisc del dev v0 ingress
    const captured = '300000002500050002c7036b0000000000000000030000000000fffff1ffffff000000000c000100696e677265737300';
    expect(wireHex(deleteIngressQdisc(3))).toBe(capturedHex(captured));
  });

  it('a redirection', () => {
    // tc filter add dev v0 parent ffff: protocol all prio 1 u32 match u32 0 0 flowid 1:1
    //   action mirred egress redirect dev ifb1
    const captured =
      '940000002c00050642b6006b000000000000000003000000000000000000ffff0003010008000100753332006800020008000100' +
      '0100010038000700340001000b0001006d697272656400002400028020000200000000000000000004000000000000000000000001' +
      '000000040000002400050001000100000000000000000000000000000000000000000000000000' +
      '00000000';
    expect(wireHex(redirectIngress(3, 4))).toBe(capturedHex(captured));
  });
});

describe('what the kernel answers', () => {
  const bucket = { rate: 5_000_000_000, burst: 100_000_000, limit: 2_000_000_000 };

  it('is read back as it was set', () => {
    expect(decodeQdisc(setTokenBucket(3, bucket).payload)).toMatchObject({
      index: 3,
      kind: 'tbf',
      tokenBucket: bucket,
    });
    expect(decodeQdisc(newIngressQdisc(3).payload)).toMatchObject({
      kind: 'ingress',
      tokenBucket: undefined,
      limits: {},
    });
    expect(decodeIngressFilter(redirectIngress(3, 4).payload)).toEqual({ index: 3, kind: 'u32', redirectsTo: 4 });
  });

  it('what a class of htb may send is its own, and what it borrows', () => {
    const root = { handle: 0x1_0001, parent: TC_H_ROOT, rate: 1_000_000, ceiling: 2_000_000 };
    const inner = { handle: 0x1_0002, parent: 0x1_0001, rate: 1, ceiling: 5000 };
    const leaf = { handle: 0x1_0003, parent: 0x1_0002, rate: 1, ceiling: 9000 };
    expect(slowestOf([])).toBe(Number.POSITIVE_INFINITY);
    expect(slowestOf([root])).toBe(1_000_000);
    expect(slowestOf([root, inner])).toBe(5000);
    expect(slowestOf([root, inner, leaf])).toBe(5000);
    expect(slowestOf([{ ...root, rate: 1 }, inner])).toBe(1);
  });

  it('decodes to a value or ERR_NETLINK_DECODE whatever its bytes', () => {
    expectSafeDecoder(decodeQdisc, [setTokenBucket(3, bucket).payload, newIngressQdisc(3).payload]);
    expectSafeDecoder(decodeIngressFilter, [redirectIngress(3, 4).payload]);
  });
});
