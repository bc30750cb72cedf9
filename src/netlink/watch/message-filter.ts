import { ByteWriter, NodeplaneError } from '../../core/index.ts';
import { swap16 } from '../integer.ts';
import {
  BPF_JUMP_IF_EQUAL,
  BPF_LOAD,
  BPF_RETURN,
  BPF_TAKE_ALL,
  BPF_TAKE_NOTHING,
  sock_filter,
} from '../uapi/filter.ts';
import { NLMSG_HDRLEN } from '../uapi/netlink.ts';

/** Which messages of some types a socket is to get: those with one of these values in a field of their body. */
export interface MessageRule {
  /** nlmsg_type. */
  readonly types: readonly number[];
  /** A field of the struct the body begins with: its size, and its offset there. */
  readonly field: readonly [type: 'u8' | 's32', offset: number];
  readonly values: readonly number[];
}

/** What a program is made of. */
export type Instruction = Parameters<(typeof sock_filter)['encode']>[1];

/** Jumps are 8 bits wide, and a value takes two instructions. */
const MOST_VALUES = 100;
/** Of nlmsg_type and nlmsg_pid in struct nlmsghdr. */
const [TYPE_OFFSET, PORT_OFFSET] = [4, 12];

const take: Instruction = { code: BPF_RETURN, k: BPF_TAKE_ALL };
const drop: Instruction = { code: BPF_RETURN, k: BPF_TAKE_NOTHING };

/**
 * A program for `GroupTransport.attachFilter`: the kernel drops what no rule asks for, before it is queued and anybody is woken.
 *
 * @param exceptFrom port IDs of sockets whose changes are not told. FDB entries come without one (port 0)
 * @throws ERR_ENCODE for more than 100 values
 */
export function messageFilter(rules: readonly MessageRule[], exceptFrom: readonly number[] = []): Uint8Array {
  if (Math.max(exceptFrom.length, ...rules.map(({ values }) => values.length)) > MOST_VALUES) {
    throw new NodeplaneError('ERR_ENCODE', `Cannot write a message filter with more than ${MOST_VALUES} values`);
  }
  return program([...portInstructions(exceptFrom), ...rules.flatMap(ruleInstructions), drop]);
}

/**
 * As `messageFilter`, for all messages but those about changes made over sockets with these port IDs; of more than 100, the first 100.
 *
 * @param always nlmsg_type of messages that are told of all sockets. @default none
 */
export function withoutPorts(exceptFrom: readonly number[], always: readonly number[] = []): Uint8Array {
  const told = always.flatMap((type) => [skipUnless(swap16(type)), take]);
  const types = [{ code: BPF_LOAD.u16, k: TYPE_OFFSET }, ...told];
  return program([...types, ...portInstructions(exceptFrom.slice(0, MOST_VALUES)), take]);
}

/** struct sock_filter[] of instructions. */
export function program(instructions: readonly Instruction[]): Uint8Array {
  const writer = new ByteWriter(sock_filter.size * instructions.length);
  for (const instruction of instructions) sock_filter.encode(writer, instruction);
  return writer.written();
}

function portInstructions(exceptFrom: readonly number[]): Instruction[] {
  return [{ code: BPF_LOAD.u32, k: PORT_OFFSET }, ...exceptFrom.flatMap((port) => [skipUnless(swap32(port)), drop])];
}

/** Ends with a verdict on messages of its types, and goes on behind itself with others. */
function ruleInstructions({ types, field: [type, offset], values }: MessageRule): Instruction[] {
  const isByte = type === 'u8';
  const verdict = [
    { code: isByte ? BPF_LOAD.u8 : BPF_LOAD.u32, k: NLMSG_HDRLEN + offset },
    ...values.flatMap((value) => [skipUnless(isByte ? value : swap32(value)), take]),
    drop,
  ];
  const comparisons = types.map((each, index): Instruction => {
    const left = types.length - 1 - index;
    return { code: BPF_JUMP_IF_EQUAL, jt: left, jf: left === 0 ? verdict.length : 0, k: swap16(each) };
  });
  return [{ code: BPF_LOAD.u16, k: TYPE_OFFSET }, ...comparisons, ...verdict];
}

function skipUnless(value: number): Instruction {
  return { code: BPF_JUMP_IF_EQUAL, jt: 0, jf: 1, k: value };
}

/** Netlink is in host order, and BPF loads in network order: what to compare with has its bytes exchanged. */
function swap32(value: number): number {
  return ((swap16(value & 0xffff) << 16) | swap16((value >>> 16) & 0xffff)) >>> 0;
}
