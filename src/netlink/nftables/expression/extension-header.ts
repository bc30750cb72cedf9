import { NFTA_EXTHDR } from '../../uapi/nf-tables-expressions.ts';
import type { UnknownExpression } from './expression.ts';
import { readRegister } from './integers.ts';
import type { Register } from './register.ts';

/** enum nft_exthdr_op: headers of IPv6 in front of the transport's, and options of IPv4. Not those of TCP and SCTP. */
const OPERATIONS: Readonly<Record<number, ExtensionHeader['of']>> = { 0: 'IPv6', 2: 'IPv4' };
const NFT_EXTHDR_F_PRESENT = 1;

/** What a rule asks of a header behind that of IP, or of an option of IPv4. */
export interface ExtensionHeader {
  readonly of: 'IPv4' | 'IPv6';
  readonly to: Register;
  /** Whether it is there, 0 or 1. Otherwise the rule ends where it is not. */
  readonly present: boolean;
}

/** Undefined: the expression asks nothing of the kind, or changes it. Throws ERR_NETLINK_DECODE. */
export function readExtensionHeader({ name, data }: UnknownExpression): ExtensionHeader | undefined {
  if (name !== 'exthdr') return undefined;
  const a = NFTA_EXTHDR.decode(data);
  const of = OPERATIONS[a.NFTA_EXTHDR_OP ?? 0];
  if (!of || a.NFTA_EXTHDR_DREG === undefined) return undefined;
  const present = ((a.NFTA_EXTHDR_FLAGS ?? 0) & NFT_EXTHDR_F_PRESENT) !== 0;
  return { of, present, to: readRegister(a.NFTA_EXTHDR_DREG, 'NFTA_EXTHDR_DREG') };
}
