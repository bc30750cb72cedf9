// The attributes of expressions and data in <linux/netfilter/nf_tables.h>. Integers are in network byte order; the bytes of
// registers and elements are as they are.
import { attributeSet } from '../attribute-set.ts';
import { NLA_F_NESTED } from './netlink.ts';

const NFTA_VERDICT = attributeSet('NFTA_VERDICT', {
  /** A signed number, in network byte order. */
  NFTA_VERDICT_CODE: [1, 'be32'],
  NFTA_VERDICT_CHAIN: [2, 'string'],
});

/** Data of elements and immediates, of comparisons and masks. */
export const NFTA_DATA = attributeSet('NFTA_DATA', {
  NFTA_DATA_VALUE: [1, 'bytes'],
  NFTA_DATA_VERDICT: [2 | NLA_F_NESTED, NFTA_VERDICT],
});

/** The attributes of expressions, by the kernel's name of the expression. */
export const NFT_EXPRESSIONS = {
  payload: attributeSet('NFTA_PAYLOAD', {
    NFTA_PAYLOAD_DREG: [1, 'be32'],
    NFTA_PAYLOAD_BASE: [2, 'be32'],
    NFTA_PAYLOAD_OFFSET: [3, 'be32'],
    NFTA_PAYLOAD_LEN: [4, 'be32'],
    NFTA_PAYLOAD_SREG: [5, 'be32'],
    NFTA_PAYLOAD_CSUM_TYPE: [6, 'be32'],
    NFTA_PAYLOAD_CSUM_OFFSET: [7, 'be32'],
    NFTA_PAYLOAD_CSUM_FLAGS: [8, 'be32'],
  }),
  meta: attributeSet('NFTA_META', {
    NFTA_META_DREG: [1, 'be32'],
    NFTA_META_KEY: [2, 'be32'],
    NFTA_META_SREG: [3, 'be32'],
  }),
  cmp: attributeSet('NFTA_CMP', {
    NFTA_CMP_SREG: [1, 'be32'],
    NFTA_CMP_OP: [2, 'be32'],
    NFTA_CMP_DATA: [3 | NLA_F_NESTED, NFTA_DATA],
  }),
  range: attributeSet('NFTA_RANGE', {
    NFTA_RANGE_SREG: [1, 'be32'],
    NFTA_RANGE_OP: [2, 'be32'],
    NFTA_RANGE_FROM_DATA: [3 | NLA_F_NESTED, NFTA_DATA],
    NFTA_RANGE_TO_DATA: [4 | NLA_F_NESTED, NFTA_DATA],
  }),
  bitwise: attributeSet('NFTA_BITWISE', {
    NFTA_BITWISE_SREG: [1, 'be32'],
    NFTA_BITWISE_DREG: [2, 'be32'],
    NFTA_BITWISE_LEN: [3, 'be32'],
    NFTA_BITWISE_MASK: [4 | NLA_F_NESTED, NFTA_DATA],
    NFTA_BITWISE_XOR: [5 | NLA_F_NESTED, NFTA_DATA],
    NFTA_BITWISE_OP: [6, 'be32'],
    NFTA_BITWISE_DATA: [7 | NLA_F_NESTED, NFTA_DATA],
  }),
  byteorder: attributeSet('NFTA_BYTEORDER', {
    NFTA_BYTEORDER_SREG: [1, 'be32'],
    NFTA_BYTEORDER_DREG: [2, 'be32'],
    NFTA_BYTEORDER_OP: [3, 'be32'],
    NFTA_BYTEORDER_LEN: [4, 'be32'],
    NFTA_BYTEORDER_SIZE: [5, 'be32'],
  }),
  lookup: attributeSet('NFTA_LOOKUP', {
    NFTA_LOOKUP_SET: [1, 'string'],
    NFTA_LOOKUP_SREG: [2, 'be32'],
    NFTA_LOOKUP_DREG: [3, 'be32'],
    NFTA_LOOKUP_SET_ID: [4, 'be32'],
    NFTA_LOOKUP_FLAGS: [5, 'be32'],
  }),
  immediate: attributeSet('NFTA_IMMEDIATE', {
    NFTA_IMMEDIATE_DREG: [1, 'be32'],
    NFTA_IMMEDIATE_DATA: [2 | NLA_F_NESTED, NFTA_DATA],
  }),
  nat: attributeSet('NFTA_NAT', {
    NFTA_NAT_TYPE: [1, 'be32'],
    NFTA_NAT_FAMILY: [2, 'be32'],
    NFTA_NAT_REG_ADDR_MIN: [3, 'be32'],
    NFTA_NAT_REG_ADDR_MAX: [4, 'be32'],
    NFTA_NAT_REG_PROTO_MIN: [5, 'be32'],
    NFTA_NAT_REG_PROTO_MAX: [6, 'be32'],
    NFTA_NAT_FLAGS: [7, 'be32'],
  }),
  masq: attributeSet('NFTA_MASQ', {
    NFTA_MASQ_FLAGS: [1, 'be32'],
    NFTA_MASQ_REG_PROTO_MIN: [2, 'be32'],
    NFTA_MASQ_REG_PROTO_MAX: [3, 'be32'],
  }),
  redir: attributeSet('NFTA_REDIR', {
    NFTA_REDIR_REG_PROTO_MIN: [1, 'be32'],
    NFTA_REDIR_REG_PROTO_MAX: [2, 'be32'],
    NFTA_REDIR_FLAGS: [3, 'be32'],
  }),
  fib: attributeSet('NFTA_FIB', {
    NFTA_FIB_DREG: [1, 'be32'],
    NFTA_FIB_RESULT: [2, 'be32'],
    NFTA_FIB_FLAGS: [3, 'be32'],
  }),
  rt: attributeSet('NFTA_RT', {
    NFTA_RT_DREG: [1, 'be32'],
    NFTA_RT_KEY: [2, 'be32'],
  }),
  ct: attributeSet('NFTA_CT', {
    NFTA_CT_DREG: [1, 'be32'],
    NFTA_CT_KEY: [2, 'be32'],
    NFTA_CT_DIRECTION: [3, 'u8'],
    NFTA_CT_SREG: [4, 'be32'],
  }),
  numgen: attributeSet('NFTA_NG', {
    NFTA_NG_DREG: [1, 'be32'],
    NFTA_NG_MODULUS: [2, 'be32'],
    NFTA_NG_TYPE: [3, 'be32'],
    NFTA_NG_OFFSET: [4, 'be32'],
  }),
  hash: attributeSet('NFTA_HASH', {
    NFTA_HASH_SREG: [1, 'be32'],
    NFTA_HASH_DREG: [2, 'be32'],
    NFTA_HASH_LEN: [3, 'be32'],
    NFTA_HASH_MODULUS: [4, 'be32'],
    NFTA_HASH_SEED: [5, 'be32'],
    NFTA_HASH_OFFSET: [6, 'be32'],
    NFTA_HASH_TYPE: [7, 'be32'],
  }),
  dynset: attributeSet('NFTA_DYNSET', {
    NFTA_DYNSET_SET_NAME: [1, 'string'],
    NFTA_DYNSET_SET_ID: [2, 'be32'],
    NFTA_DYNSET_OP: [3, 'be32'],
    NFTA_DYNSET_SREG_KEY: [4, 'be32'],
    NFTA_DYNSET_SREG_DATA: [5, 'be32'],
    /** be64, milliseconds */
    NFTA_DYNSET_TIMEOUT: [6, 'bytes'],
    /** One NFTA_EXPR. */
    NFTA_DYNSET_EXPR: [7 | NLA_F_NESTED, 'bytes'],
    NFTA_DYNSET_FLAGS: [9, 'be32'],
    /** A list of NFTA_EXPR. */
    NFTA_DYNSET_EXPRESSIONS: [10 | NLA_F_NESTED, 'bytes'],
  }),
  reject: attributeSet('NFTA_REJECT', {
    NFTA_REJECT_TYPE: [1, 'be32'],
    NFTA_REJECT_ICMP_CODE: [2, 'u8'],
  }),
  counter: attributeSet('NFTA_COUNTER', {
    /** be64, both */
    NFTA_COUNTER_BYTES: [1, 'bytes'],
    NFTA_COUNTER_PACKETS: [2, 'bytes'],
  }),
  limit: attributeSet('NFTA_LIMIT', {
    /** be64, both: the rate a unit, and the unit in seconds */
    NFTA_LIMIT_RATE: [1, 'bytes'],
    NFTA_LIMIT_UNIT: [2, 'bytes'],
    NFTA_LIMIT_BURST: [3, 'be32'],
    NFTA_LIMIT_TYPE: [4, 'be32'],
    NFTA_LIMIT_FLAGS: [5, 'be32'],
  }),
  notrack: attributeSet('NFTA_NOTRACK', {}),
  log: attributeSet('NFTA_LOG', {
    NFTA_LOG_GROUP: [1, 'be16'],
    NFTA_LOG_PREFIX: [2, 'string'],
    NFTA_LOG_SNAPLEN: [3, 'be32'],
    NFTA_LOG_QTHRESHOLD: [4, 'be16'],
    NFTA_LOG_LEVEL: [5, 'be32'],
    NFTA_LOG_FLAGS: [6, 'be32'],
  }),
  objref: attributeSet('NFTA_OBJREF', {
    NFTA_OBJREF_IMM_TYPE: [1, 'be32'],
    NFTA_OBJREF_IMM_NAME: [2, 'unterminated'],
  }),
  /** Matches and targets of x_tables, <linux/netfilter/nf_tables_compat.h>. */
  match: attributeSet('NFTA_MATCH', {
    NFTA_MATCH_NAME: [1, 'string'],
    NFTA_MATCH_REV: [2, 'be32'],
    NFTA_MATCH_INFO: [3, 'bytes'],
  }),
  target: attributeSet('NFTA_TARGET', {
    NFTA_TARGET_NAME: [1, 'string'],
    NFTA_TARGET_REV: [2, 'be32'],
    NFTA_TARGET_INFO: [3, 'bytes'],
  }),
} as const;

/** Of `exthdr`, which the model does not have. */
export const NFTA_EXTHDR = attributeSet('NFTA_EXTHDR', {
  NFTA_EXTHDR_DREG: [1, 'be32'],
  NFTA_EXTHDR_FLAGS: [5, 'be32'],
  NFTA_EXTHDR_OP: [6, 'be32'],
});
