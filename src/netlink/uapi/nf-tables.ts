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
export const NFT_MSG_NEWFLOWTABLE = 22;
export const NFT_MSG_GETFLOWTABLE = 23;
export const NFT_MSG_DELFLOWTABLE = 24;
// Since Linux 6.3.
export const NFT_MSG_DESTROYRULE = 28;
export const NFT_MSG_DESTROYSET = 29;
export const NFT_MSG_DESTROYSETELEM = 30;
export const NFT_MSG_DESTROYOBJ = 31;

export const NFPROTO_INET = 1;
export const NFPROTO_IPV4 = 2;
export const NFPROTO_ARP = 3;
export const NFPROTO_NETDEV = 5;
export const NFPROTO_BRIDGE = 7;
export const NFPROTO_IPV6 = 10;

/** In bytes. */
export const NFT_USERDATA_MAXLEN = 256;

/** Flag of a table: its base chains are not hooked in. */
export const NFT_TABLE_F_DORMANT = 1;
/** Flag of a table: it belongs to the socket that made it, and goes with it (Linux 5.12). */
export const NFT_TABLE_F_OWNER = 2;

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
export const NFTA_DEVICE_PREFIX = 2;
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
  NFTA_HOOK_DEV: [3, 'string'],
  /** A list of names; of NFTA_DEVICE_PREFIX the beginnings of names. */
  NFTA_HOOK_DEVS: [4 | NLA_F_NESTED, 'bytes'],
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
  /** One expression; the next has a list of them. */
  NFTA_SET_EXPR: [17 | NLA_F_NESTED, 'bytes'],
  NFTA_SET_EXPRESSIONS: [18 | NLA_F_NESTED, 'bytes'],
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
