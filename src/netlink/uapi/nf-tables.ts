// <linux/netfilter/nf_tables.h>. Integers are in network byte order; the bytes of registers and elements are as they are.
import { attributeSet } from '../attribute-set.ts';
import { NLA_F_NESTED } from './netlink.ts';

export const NFNL_SUBSYS_NFTABLES = 10;

/** Multicast group of everything that changes (enum nfnetlink_groups). */
export const NFNLGRP_NFTABLES = 7;

export const NFT_MSG_NEWTABLE = 0;
export const NFT_MSG_GETTABLE = 1;
export const NFT_MSG_DELTABLE = 2;
export const NFT_MSG_NEWCHAIN = 3;
export const NFT_MSG_GETCHAIN = 4;
export const NFT_MSG_DELCHAIN = 5;
export const NFT_MSG_NEWRULE = 6;
export const NFT_MSG_GETRULE = 7;
export const NFT_MSG_DELRULE = 8;
export const NFT_MSG_NEWSET = 9;
export const NFT_MSG_GETSET = 10;
export const NFT_MSG_DELSET = 11;
export const NFT_MSG_NEWSETELEM = 12;
export const NFT_MSG_GETSETELEM = 13;
export const NFT_MSG_DELSETELEM = 14;
export const NFT_MSG_NEWGEN = 15;
export const NFT_MSG_GETGEN = 16;
export const NFT_MSG_NEWOBJ = 18;
export const NFT_MSG_GETOBJ = 19;
export const NFT_MSG_DELOBJ = 20;
// Since Linux 6.3.
export const NFT_MSG_DESTROYRULE = 28;
export const NFT_MSG_DESTROYSET = 29;
export const NFT_MSG_DESTROYSETELEM = 30;
export const NFT_MSG_DESTROYOBJ = 31;

export const NFPROTO_INET = 1;
export const NFPROTO_IPV4 = 2;
export const NFPROTO_BRIDGE = 7;
export const NFPROTO_IPV6 = 10;

/** In bytes, without the final NUL, of tables, chains, sets and counters. */
export const NFT_NAME_MAXLEN = 255;
/** In bytes. */
export const NFT_USERDATA_MAXLEN = 256;

export const NF_DROP = 0;
export const NF_ACCEPT = 1;

// enum nft_set_flags
export const NFT_SET_ANONYMOUS = 0x1;
export const NFT_SET_CONSTANT = 0x2;
export const NFT_SET_INTERVAL = 0x4;
export const NFT_SET_MAP = 0x8;
export const NFT_SET_TIMEOUT = 0x10;
export const NFT_SET_EVAL = 0x20;
export const NFT_SET_CONCAT = 0x80;
/** NFTA_SET_DATA_TYPE of a verdict map. */
export const NFT_DATA_VERDICT = 0xffffff00;

export const NFT_SET_ELEM_INTERVAL_END = 0x1;
export const NFT_SET_ELEM_CATCHALL = 0x2;

// enum nft_registers: the verdict, four registers of 16 bytes, the same memory as sixteen registers of 4 bytes.
export const NFT_REG_VERDICT = 0;
export const NFT_REG_1 = 1;
export const NFT_REG32_00 = 8;

export const NFT_LOOKUP_F_INV = 1;
export const NFT_DYNSET_F_EXPR = 2;
export const NFT_LIMIT_F_INV = 1;
export const NFT_PAYLOAD_CSUM_INET = 1;
export const NFT_PAYLOAD_L4CSUM_PSEUDOHDR = 1;
export const NFTA_FIB_F_PRESENT = 32;
export const NFT_OBJECT_COUNTER = 1;

// <linux/netfilter/nf_nat.h>. The first says that a port is given.
export const NF_NAT_RANGE_PROTO_SPECIFIED = 2;
export const NF_NAT_RANGE_PROTO_RANDOM = 4;
export const NF_NAT_RANGE_PERSISTENT = 8;
export const NF_NAT_RANGE_PROTO_RANDOM_FULLY = 16;
export const NF_NAT_RANGE_NETMAP = 64;

// Attributes used outside their sets, by the code that writes and reads lists and elements in place.
export const NFTA_LIST_ELEM = 1;
export const NFTA_RULE_EXPRESSIONS = 4;
export const NFTA_SET_ELEM_LIST_TABLE = 1;
export const NFTA_SET_ELEM_LIST_SET = 2;
export const NFTA_SET_ELEM_LIST_ELEMENTS = 3;
export const NFTA_SET_ELEM_LIST_SET_ID = 4;
export const NFTA_SET_ELEM_KEY = 1;
export const NFTA_SET_ELEM_DATA = 2;
export const NFTA_SET_ELEM_FLAGS = 3;
export const NFTA_SET_ELEM_TIMEOUT = 4;
export const NFTA_SET_ELEM_EXPIRATION = 5;
export const NFTA_SET_ELEM_USERDATA = 6;
export const NFTA_SET_ELEM_KEY_END = 10;
export const NFTA_DATA_VALUE = 1;
export const NFTA_DATA_VERDICT = 2;
export const NFTA_VERDICT_CODE = 1;
export const NFTA_VERDICT_CHAIN = 2;
export const NFTA_EXPR_NAME = 1;
export const NFTA_EXPR_DATA = 2;

export const NFTA_TABLE = attributeSet('NFTA_TABLE', {
  NFTA_TABLE_NAME: [1, 'string'],
  NFTA_TABLE_FLAGS: [2, 'be32'],
  NFTA_TABLE_USE: [3, 'be32'],
  /** be64, as are all handles */
  NFTA_TABLE_HANDLE: [4, 'bytes'],
  NFTA_TABLE_USERDATA: [6, 'bytes'],
});

const NFTA_HOOK = attributeSet('NFTA_HOOK', {
  NFTA_HOOK_HOOKNUM: [1, 'be32'],
  /** A signed number, in network byte order. */
  NFTA_HOOK_PRIORITY: [2, 'be32'],
});

export const NFTA_CHAIN = attributeSet('NFTA_CHAIN', {
  NFTA_CHAIN_TABLE: [1, 'string'],
  NFTA_CHAIN_HANDLE: [2, 'bytes'],
  NFTA_CHAIN_NAME: [3, 'string'],
  NFTA_CHAIN_HOOK: [4 | NLA_F_NESTED, NFTA_HOOK],
  NFTA_CHAIN_POLICY: [5, 'be32'],
  NFTA_CHAIN_USE: [6, 'be32'],
  NFTA_CHAIN_TYPE: [7, 'string'],
  NFTA_CHAIN_FLAGS: [10, 'be32'],
  NFTA_CHAIN_USERDATA: [12, 'bytes'],
});

export const NFTA_RULE = attributeSet('NFTA_RULE', {
  NFTA_RULE_TABLE: [1, 'string'],
  NFTA_RULE_CHAIN: [2, 'string'],
  NFTA_RULE_HANDLE: [3, 'bytes'],
  /** A list of NFTA_EXPR. */
  NFTA_RULE_EXPRESSIONS: [4 | NLA_F_NESTED, 'bytes'],
  NFTA_RULE_POSITION: [6, 'bytes'],
  NFTA_RULE_USERDATA: [7, 'bytes'],
});

export const NFTA_EXPR = attributeSet('NFTA_EXPR', {
  NFTA_EXPR_NAME: [1, 'string'],
  /** Attributes of the expression's own set. */
  NFTA_EXPR_DATA: [2 | NLA_F_NESTED, 'bytes'],
});

const NFTA_SET_DESC = attributeSet('NFTA_SET_DESC', {
  NFTA_SET_DESC_SIZE: [1, 'be32'],
  /** A list of fields: { NFTA_SET_FIELD_LEN: [1, 'be32'] }. */
  NFTA_SET_DESC_CONCAT: [2 | NLA_F_NESTED, 'bytes'],
});

export const NFTA_SET = attributeSet('NFTA_SET', {
  NFTA_SET_TABLE: [1, 'string'],
  NFTA_SET_NAME: [2, 'string'],
  NFTA_SET_FLAGS: [3, 'be32'],
  NFTA_SET_KEY_TYPE: [4, 'be32'],
  NFTA_SET_KEY_LEN: [5, 'be32'],
  NFTA_SET_DATA_TYPE: [6, 'be32'],
  NFTA_SET_DATA_LEN: [7, 'be32'],
  NFTA_SET_DESC: [9 | NLA_F_NESTED, NFTA_SET_DESC],
  NFTA_SET_ID: [10, 'be32'],
  /** be64, milliseconds */
  NFTA_SET_TIMEOUT: [11, 'bytes'],
  /** Milliseconds. */
  NFTA_SET_GC_INTERVAL: [12, 'be32'],
  NFTA_SET_USERDATA: [13, 'bytes'],
  NFTA_SET_HANDLE: [16, 'bytes'],
});

/** Of a set description: the length of one field of a concatenation. */
export const NFTA_SET_FIELD = attributeSet('NFTA_SET_FIELD', { NFTA_SET_FIELD_LEN: [1, 'be32'] });

export const NFTA_SET_ELEM_LIST = attributeSet('NFTA_SET_ELEM_LIST', {
  NFTA_SET_ELEM_LIST_TABLE: [1, 'string'],
  NFTA_SET_ELEM_LIST_SET: [2, 'string'],
  /** A list of elements. */
  NFTA_SET_ELEM_LIST_ELEMENTS: [3 | NLA_F_NESTED, 'bytes'],
  NFTA_SET_ELEM_LIST_SET_ID: [4, 'be32'],
});

export const NFTA_OBJ = attributeSet('NFTA_OBJ', {
  NFTA_OBJ_TABLE: [1, 'string'],
  NFTA_OBJ_NAME: [2, 'string'],
  NFTA_OBJ_TYPE: [3, 'be32'],
  /** Attributes of the expression with the object's name. */
  NFTA_OBJ_DATA: [4 | NLA_F_NESTED, 'bytes'],
  NFTA_OBJ_USE: [5, 'be32'],
  NFTA_OBJ_HANDLE: [6, 'bytes'],
  NFTA_OBJ_USERDATA: [8, 'bytes'],
});

export const NFTA_GEN = attributeSet('NFTA_GEN', {
  NFTA_GEN_ID: [1, 'be32'],
  NFTA_GEN_PROC_PID: [2, 'be32'],
  NFTA_GEN_PROC_NAME: [3, 'string'],
});

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
} as const;
