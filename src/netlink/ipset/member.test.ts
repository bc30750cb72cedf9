import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expectSafeDecoder } from '../../../test/fakes/decoder-properties.ts';
import { capturedAsVersion6 } from '../../../test/fakes/ipset-golden.ts';
import { capturedPayload, wireHex } from '../../../test/fakes/netlink-golden.ts';
import { ipFromBytes, parseIp } from '../../core/index.ts';
import { AttributeWriter, readAttributes } from '../attribute.ts';
import type { NetlinkRequest } from '../message.ts';
import { IPSET_ATTR_DATA } from '../uapi/ip-set.ts';
import { NLM_F_EXCL } from '../uapi/netlink.ts';
import { nfgenmsg } from '../uapi/nfnetlink.ts';
import { ipsetRequest } from './ipset-request.ts';
import { addMember, decodeMembers, deleteMember, type SetMember } from './member.ts';

const TCP = 6;
const UDP = 17;
const SCTP = 132;

/** ipset ends the one member of a message with a line number of 0, which the kernel needs of several only. */
function withoutLine(hex: string): string {
  const bytes = Buffer.from(hex, 'hex');
  const end = bytes.length - 8;
  expect(bytes.subarray(end).toString('hex')).toBe('0800094000000000');
  bytes.writeUInt32LE(end, 0);
  const nest = bytes.indexOf('0780', 0, 'hex') - 2;
  bytes.writeUInt16LE(end - nest, nest);
  return bytes.subarray(0, end).toString('hex');
}

/** As ipset without `-exist`: a member that is there (or, when deleting, is not) is refused. */
const strictly = (request: NetlinkRequest): NetlinkRequest => ({ ...request, flags: NLM_F_EXCL });

const SERVICE: SetMember = { address: parseIp('10.96.0.1'), protocol: TCP, port: 443 };

describe('the bytes of ipset 7.17 (strace -e write=all)', () => {
  it.each([
    [
      '-exist add KUBE-CLUSTER-IP 10.96.0.1,tcp:443',
      addMember('KUBE-CLUSTER-IP', SERVICE),
      '580000000906050017bf006b00000000020000000500010007000000140002004b5542452d434c55535445522d4950002800' +
        '07800c000180080001400a6000010600044001bb000005000700060000000800094000000000',
    ],
    [
      'add KUBE-NODE-PORT-TCP 30080',
      strictly(addMember('KUBE-NODE-PORT-TCP', { port: 30080 })),
      '480000000906050218bf006b00000000020000000500010007000000170002004b5542452d4e4f44452d504f52542d544350' +
        '00001400078006000440758000000800094000000000',
    ],
    [
      'add NET 10.0.0.1,sctp:9,192.0.2.0/24',
      strictly(
        addMember('NET', {
          address: parseIp('10.0.0.1'),
          protocol: SCTP,
          port: 9,
          second: parseIp('192.0.2.0'),
          secondPrefixLength: 24,
        }),
      ),
      '600000000906050219bf006b00000000020000000500010007000000080002004e4554003c0007800c000180080001400a000001' +
        '060004400009000005000700840000000c00148008000140c000020005001500180000000800094000000000',
    ],
    [
      'add JUSTIP 192.0.2.7',
      strictly(addMember('JUSTIP', { address: parseIp('192.0.2.7') })),
      '400000000906050219bf006b000000000200000005000100070000000b0002004a55535449500000180007800c00018008000140c0000207' +
        '0800094000000000',
    ],
    [
      'del KUBE-CLUSTER-IP 10.96.0.1,tcp:443',
      strictly(deleteMember('KUBE-CLUSTER-IP', { ...SERVICE, mark: 4, comment: 'none of the key', timeoutSeconds: 1 })),
      '580000000a06050219bf006b00000000020000000500010007000000140002004b5542452d434c55535445522d4950002800' +
        '07800c000180080001400a6000010600044001bb000005000700060000000800094000000000',
    ],
  ])('ipset %s', (_command, request, captured) => {
    expect(wireHex(request)).toBe(withoutLine(capturedAsVersion6(captured)));
  });
});

const address = fc
  .oneof(fc.uint8Array({ minLength: 4, maxLength: 4 }), fc.uint8Array({ minLength: 16, maxLength: 16 }))
  .map(ipFromBytes);
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const member: fc.Arbitrary<SetMember> = fc.record({
  address: optional(address),
  protocol: optional(fc.nat(255)),
  port: optional(fc.nat(65535)),
  second: optional(address),
  secondPrefixLength: optional(fc.nat(128)),
  timeoutSeconds: optional(fc.nat(2_147_483)),
  comment: optional(fc.string({ maxLength: 60 }).filter((text) => !text.includes('\0'))),
  mark: optional(fc.nat(0xffff_ffff)),
});

/** A listing that has the members as they are added. */
function listing(members: readonly SetMember[]): Uint8Array {
  const writer = new AttributeWriter();
  for (const one of members) {
    for (const { type, value } of readAttributes(addMember('A', one).payload, nfgenmsg.size, 'ADD')) {
      if (type === IPSET_ATTR_DATA) writer.blob(type, value, 'IPSET_ATTR_DATA');
    }
  }
  return ipsetRequest('IPSET_CMD_LIST', 'members', { IPSET_ATTR_ADT: writer.bytes.written() }).payload;
}

it('reads every member as it was written', () => {
  fc.assert(
    fc.property(fc.array(member, { maxLength: 40 }), (members) => {
      expect(decodeMembers(listing(members))).toEqual(members);
    }),
  );
});

// ipset list KUBE6, with a member `fd00::1,udp:53,fd00::2 timeout 56 comment "a b" skbmark 0x4000/0x4000`.
const LISTED =
  '1c010000070602001abf006b3b7900000200000005000100070000000a0002004b5542453600000014000300686173683a69702c706f72742c697000' +
  '050005000a000000050004000600000006000b40000100004c00078008001240000004000800134000010000050015000c0000000800114065995740' +
  '080019400000000008001a40000001cc0800184000000001080006400000025808000840000000587c000880' +
  '780007801800018014000200fd0000000000000000000000000000011800148014000200fd000000000000000000000000000002' +
  '0600044000350000050007001100000008000640000000380c00184000000000000000000c0019400000000000000000' +
  '08001a00612062000c001b400000400000004000';
// ipset list NET
const LISTED_NET =
  'c8000000070602001cbf006b2a7a0000020000000500010007000000080002004e45540015000300686173683a69702c706f72742c6e65740000000005' +
  '00050002000000050004000800000006000b40000300003c00078008001240000004000800134000010000050015000c0000000800114062055a4e08' +
  '0019400000000008001a4000000208080018400000000138000880340007800c000180080001000a0000010c00148008000100c0000200060004400009' +
  '000005001500180000000500070084000000';

describe('a listing', () => {
  it('tells addresses, ports, protocol, mark, comment and the time that is left', () => {
    expect(decodeMembers(capturedPayload(LISTED))).toEqual([
      {
        address: parseIp('fd00::1'),
        protocol: UDP,
        port: 53,
        second: parseIp('fd00::2'),
        timeoutSeconds: 56,
        comment: 'a b',
        mark: 0x4000,
        markMask: 0x4000,
      },
    ]);
  });

  it('tells networks', () => {
    expect(decodeMembers(capturedPayload(LISTED_NET))).toEqual([
      {
        address: parseIp('10.0.0.1'),
        protocol: SCTP,
        port: 9,
        second: parseIp('192.0.2.0'),
        secondPrefixLength: 24,
      },
    ]);
  });

  it('is members or ERR_NETLINK_DECODE for any bytes', () => {
    expectSafeDecoder(decodeMembers, [capturedPayload(LISTED), capturedPayload(LISTED_NET)]);
  });
});
