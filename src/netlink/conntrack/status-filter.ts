import {
  BPF_JUMP_IF_SET,
  BPF_LOAD,
  BPF_LOAD_CONSTANT,
  BPF_LOAD_FROM_X,
  BPF_LOAD_X_CONSTANT,
  BPF_TO_X,
  SKF_AD_NLATTR,
} from '../uapi/filter.ts';
import { NLA_HDRLEN, NLMSG_HDRLEN } from '../uapi/netlink.ts';
import { nfgenmsg } from '../uapi/nfnetlink.ts';
import { CTA_STATUS } from '../uapi/nfnetlink-conntrack.ts';
import type { Instruction } from '../watch/index.ts';

/**
 * The beginning of a program over messages about flows. It goes on behind itself when CTA_STATUS is there without the bit, and one
 * instruction further when not.
 *
 * @param bit IPS_*
 */
export function findStatus(bit: number): readonly Instruction[] {
  return [
    { code: BPF_LOAD_CONSTANT, k: NLMSG_HDRLEN + nfgenmsg.size },
    { code: BPF_LOAD_X_CONSTANT, k: CTA_STATUS },
    { code: BPF_LOAD.u32, k: SKF_AD_NLATTR },
    { code: BPF_TO_X },
    // No such attribute: on to the end.
    { code: BPF_JUMP_IF_SET, jt: 0, jf: 3, k: 0xffff_ffff },
    { code: BPF_LOAD_FROM_X, k: NLA_HDRLEN },
    { code: BPF_JUMP_IF_SET, jt: 1, jf: 0, k: bit },
  ];
}
