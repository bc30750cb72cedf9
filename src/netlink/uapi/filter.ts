// <linux/filter.h>, <linux/bpf_common.h>: classic BPF programs, which decide what of its messages a socket gets.
import { struct } from '../struct.ts';

/**
 * struct sock_filter {
 *   __u16 code;
 *   __u8  jt;   // how many instructions to skip when the comparison holds
 *   __u8  jf;   // and when not
 *   __u32 k;
 * };
 */
export const sock_filter = struct('sock_filter', 8, { code: ['u16', 0], jt: ['u8', 2], jf: ['u8', 3], k: ['u32', 4] });

/** BPF_LD | BPF_ABS with BPF_B, BPF_H or BPF_W: load what lies at byte `k` of the message, as a number in network order. */
export const BPF_LOAD = { u8: 0x30, u16: 0x28, u32: 0x20 } as const;
/** BPF_JMP | BPF_JEQ | BPF_K */
export const BPF_JUMP_IF_EQUAL = 0x15;
/** BPF_JMP | BPF_JSET | BPF_K */
export const BPF_JUMP_IF_SET = 0x45;
/** BPF_LD | BPF_IMM and BPF_LDX | BPF_IMM: load `k` itself, into the accumulator or into X. */
export const BPF_LOAD_CONSTANT = 0x00;
export const BPF_LOAD_X_CONSTANT = 0x01;
/** BPF_LD | BPF_W | BPF_IND: load what lies `k` bytes after X. */
export const BPF_LOAD_FROM_X = 0x40;
/** BPF_MISC | BPF_TAX: the accumulator goes to X. */
export const BPF_TO_X = 0x07;
/**
 * Loaded as if it were an offset (SKF_AD_OFF + SKF_AD_NLATTR): where the attribute of type X is, searched from the
 * accumulator on; 0: nowhere.
 */
export const SKF_AD_NLATTR = (-0x1000 + 12) >>> 0;
/** Loaded the same way: a random number. */
export const SKF_AD_RANDOM = (-0x1000 + 56) >>> 0;
/** BPF_RET | BPF_K: how many bytes of the message to take. */
export const BPF_RETURN = 0x06;
export const BPF_TAKE_NOTHING = 0;
export const BPF_TAKE_ALL = 0xffff_ffff;
