import { describe, expect, it } from 'vitest';
import { expectSafeDecoder } from '../../../test/fakes/decoder-properties.ts';
import { ack, answer, done, FakeNetlink, frame, refuse } from '../../../test/fakes/fake-netlink.ts';
import { capturedPayload } from '../../../test/fakes/netlink-golden.ts';
import { parseIp } from '../../core/index.ts';
import type { NetlinkMessage } from '../message.ts';
import { Netlink } from '../netlink.ts';
import { deleteFlows, flowDeletion, flowListing, listFlows } from './conntrack.ts';
import { decodeFlow, type Flow, passesFilter } from './flow.ts';

// Captured from conntrack 1.4.7 with `strace -e trace=sendto,recvmsg -e write=all -e read=all <command>`, where
// 127.0.0.1:4000 had sent to 127.0.0.9:53 and [::1]:4000 to [fd00::9]:53, both with DNAT to port 5353 of loopback.

// The tuples of the IPv6 flow, original and reply: CTA_TUPLE_IP, CTA_TUPLE_PROTO.
const ORIGINAL_V6 =
  '2c000180' +
  '1400030000000000000000000000000000000001' +
  '14000400fd000000000000000000000000000009' +
  '1c000280' +
  '0500010011000000' +
  '060002000fa00000' +
  '0600030000350000';
const REPLY_V6 =
  '2c000180' +
  '1400030000000000000000000000000000000001' +
  '1400040000000000000000000000000000000001' +
  '1c000280' +
  '0500010011000000' +
  '0600020014e90000' +
  '060003000fa00000';
// conntrack -L, the answers: status, mark, ID, use and timeout follow the tuples.
const LISTED_V6 =
  `d400000000010200269e006b0f4b0000` +
  `0a000000` +
  `4c000180${ORIGINAL_V6}` +
  `4c000280${REPLY_V6}` +
  '08000300000001a8' +
  '0800080000000000' +
  '08000c007fbd183b' +
  '08000b0000000001' +
  '080007000000001d';
const LISTED_V4 =
  'a400000000010200269e006b0f4b0000' +
  '02000000' +
  '34000180' +
  '14000180080001007f000001080002007f000009' +
  '1c000280' +
  '0500010011000000060002000fa000000600030000350000' +
  '34000280' +
  '14000180080001007f000001080002007f000001' +
  '1c000280' +
  '05000100110000000600020014e90000060003000fa00000' +
  '08000300000001a8080008000000000008000c0004ff048808000b0000000001080007000000001d';

const listed = { IPv4: capturedPayload(LISTED_V4), IPv6: capturedPayload(LISTED_V6) };
const flow = (family: 'IPv4' | 'IPv6'): Flow => decodeFlow(listed[family]);
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** A flow in another zone, as the kernel describes it. */
const zoned = Buffer.concat([listed.IPv4, Buffer.from('0600120000070000', 'hex')]);

describe('decodeFlow', () => {
  it('reads both directions, the ID and the zone', () => {
    expect(flow('IPv4')).toEqual({
      family: 'IPv4',
      protocol: 17,
      original: {
        source: parseIp('127.0.0.1'),
        destination: parseIp('127.0.0.9'),
        sourcePort: 4000,
        destinationPort: 53,
      },
      reply: {
        source: parseIp('127.0.0.1'),
        destination: parseIp('127.0.0.1'),
        sourcePort: 5353,
        destinationPort: 4000,
      },
      id: 0x04ff0488,
      zone: 0,
      tuple: listed.IPv4.subarray(8, 56),
    });
    expect(flow('IPv6')).toMatchObject({
      family: 'IPv6',
      original: { source: parseIp('::1'), destination: parseIp('fd00::9'), destinationPort: 53 },
      reply: { source: parseIp('::1'), sourcePort: 5353 },
      id: 0x7fbd183b,
    });
    expect(decodeFlow(zoned)).toMatchObject({ zone: 7, id: 0x04ff0488 });
  });

  it('wants the way back, which the filter is not asked for', () => {
    const cut = listed.IPv4.subarray(0, 56);
    expect(passesFilter(cut, (...what) => String(what) === '17,53')).toBe(true);
    expect(passesFilter(cut, () => false)).toBe(false);
    expect(() => decodeFlow(cut)).toThrow('Cannot decode IPCTNL_MSG_CT_NEW: CTA_TUPLE_REPLY is missing');
  });

  it('wants addresses of the family', () => {
    const bytes = Buffer.from(listed.IPv4);
    bytes[0] = 10;
    expect(() => decodeFlow(bytes)).toThrow('Cannot decode IPCTNL_MSG_CT_NEW: the source of CTA_TUPLE_IP is missing');
  });

  it('gives a value or ERR_NETLINK_DECODE for any bytes', () => {
    expectSafeDecoder(decodeFlow, [listed.IPv4, listed.IPv6, zoned]);
  });
});

describe('flowListing', () => {
  it('of a family is what conntrack asks', () => {
    // conntrack -L -f ipv6
    const captured = '1400000001010103269e006b000000000a000000';
    const request = flowListing({ family: 'IPv6' });
    expect(hex(request.payload)).toBe(hex(capturedPayload(captured)));
    expect(request.type).toBe(0x0101);
  });

  it('has the kernel pick protocol, port and IPv4 address', () => {
    // By hand: nfgenmsg, CTA_TUPLE_ORIG{CTA_TUPLE_IP{V4_DST}, CTA_TUPLE_PROTO{NUM, DST_PORT}}, CTA_FILTER{2|8|32, 0}.
    const destination = { protocol: 17, port: 53, ip: parseIp('10.96.0.10') };
    expect(hex(flowListing({ family: 'IPv4', destination }).payload)).toBe(
      '02000000' +
        '24000180' +
        '0c000180' +
        '080002000a60000a' +
        '14000280' +
        '0500010011000000' +
        '0600030000350000' +
        '14001980' +
        '080001002a000000' +
        '0800020000000000',
    );
    const destinationV6 = { protocol: 17, port: 53, ip: parseIp('fd00::10') };
    expect(hex(flowListing({ family: 'IPv6', destination: destinationV6 }).payload)).toBe(
      '0a000000' +
        '18000180' +
        '14000280' +
        '0500010011000000' +
        '0600030000350000' +
        '14001980' +
        '0800010028000000' +
        '0800020000000000',
    );
    expect(hex(flowListing({ family: 'IPv4', protocol: 132 }).payload)).toBe(
      '02000000' + '10000180' + '0c000280' + '0500010084000000' + '14001980' + '0800010008000000' + '0800020000000000',
    );
  });
});

describe('flowDeletion', () => {
  it('names the flow as conntrack does, and its ID', () => {
    // conntrack -D -f ipv6 -p udp --orig-port-dst 53; it adds the reply tuple, status, timeout and mark, which the kernel
    // does not look at, instead of the ID.
    const captured = `c400000002010500269e006b000000000a0000004c000180${ORIGINAL_V6}`;
    const request = flowDeletion(flow('IPv6'));
    expect(request.type).toBe(0x0102);
    expect(hex(request.payload)).toBe(`${hex(capturedPayload(captured))}08000c007fbd183b`);
  });

  it('names the zone', () => {
    expect(hex(flowDeletion(decodeFlow(zoned)).payload)).toMatch(/08000c0004ff04880600120000070000$/);
  });
});

describe('listFlows', () => {
  it('passes over what an old kernel does not filter', () => {
    const netlink = new Netlink(
      new FakeNetlink(([request]) => [
        frame(answer(request!, 0x0100, listed.IPv4, 2), answer(request!, 0x0100, zoned, 2), done(request!)),
      ]),
    );
    const list = (ip: string, port: number, protocol = 17) =>
      listFlows(netlink, { family: 'IPv4', destination: { protocol, ip: parseIp(ip), port } }).length;
    expect([list('127.0.0.9', 53), list('127.0.0.1', 53), list('127.0.0.9', 54), list('127.0.0.9', 53, 132)]).toEqual([
      2, 0, 0, 0,
    ]);
    expect(listFlows(netlink, { family: 'IPv4', protocol: 6 })).toEqual([]);
    expect(listFlows(netlink, { family: 'IPv4', filter: (_, port) => port === 53 })).toHaveLength(2);
  });

  it('asks for flows that nobody answered, and passes over others where the kernel does not', () => {
    const answered = Buffer.from(hex(listed.IPv4).replace('08000300000001a8', '08000300000001aa'), 'hex');
    const fake = new FakeNetlink(([request]) => [
      frame(answer(request!, 0x0100, listed.IPv4, 2), answer(request!, 0x0100, answered, 2), done(request!)),
    ]);
    const netlink = new Netlink(fake);
    expect(listFlows(netlink, { family: 'IPv4' })).toHaveLength(2);
    expect(listFlows(netlink, { family: 'IPv4', unanswered: true })).toHaveLength(1);
    // CTA_STATUS 0, CTA_STATUS_MASK IPS_SEEN_REPLY.
    expect(fake.sent.map(([request]) => hex(request!.payload).slice(8))).toEqual([
      '',
      '080003000000000008001a0000000002',
    ]);
  });
});

describe('deleteFlows', () => {
  const ENOENT = 2;
  const EPERM = 1;
  const kernel = (answers: (request: NetlinkMessage) => number) =>
    new FakeNetlink((requests) => [frame(...requests.map((request) => refuse(request, answers(request))))]);

  it('sends groups of 256', () => {
    const fake = new FakeNetlink((requests) => [frame(...requests.map(ack))]);
    deleteFlows(new Netlink(fake), Array<Flow>(600).fill(flow('IPv4')));
    expect(fake.sent.map((requests) => requests.length)).toEqual([256, 256, 88]);
  });

  it('takes a flow that is gone for deleted and goes on', () => {
    const isV4 = (request: NetlinkMessage) => request.payload[0] === 2;
    const fake = kernel((request) => (isV4(request) ? ENOENT : 0));
    deleteFlows(new Netlink(fake), [flow('IPv4'), flow('IPv6')]);
    // Once together, then each.
    expect(fake.sent.map((requests) => requests.length)).toEqual([2, 1, 1]);
  });

  it('tells another refusal, also behind one that is gone', () => {
    const fake = kernel((request) => (request.payload[0] === 2 ? ENOENT : EPERM));
    expect(() => deleteFlows(new Netlink(fake), [flow('IPv4'), flow('IPv6')])).toThrow(
      'IPCTNL_MSG_CT_DELETE the flow of protocol 17 from [::1]:4000 to [fd00::9]:53: operation not permitted (EPERM)',
    );
  });
});
