import { readAttributes } from '../attribute.ts';
import { type AttributeSet, attributeSet } from '../attribute-set.ts';
import type { MessageWords } from '../debug.ts';
import type { NetlinkMessage } from '../message.ts';
import { IPSET_ATTRIBUTES, IPSET_CMD, IPSET_MEMBER, IPSET_SHAPE, NFNL_SUBSYS_IPSET } from '../uapi/ip-set.ts';
import { NFNL_SUBSYS_CTNETLINK, nfgenmsg } from '../uapi/nfnetlink.ts';
import { NFACCT_ATTRIBUTES, NFNL_MSG_ACCT_GET, NFNL_MSG_ACCT_NEW, NFNL_SUBSYS_ACCT } from '../uapi/nfnetlink-acct.ts';
import * as ct from '../uapi/nfnetlink-conntrack.ts';
import { attributesText, byNumber, type NestedBytes } from './attribute-words.ts';

const CTA_IP = attributeSet('CTA_IP', {
  CTA_IP_V4_SRC: [ct.CTA_IP_V4_SRC, 'bytes'],
  CTA_IP_V4_DST: [ct.CTA_IP_V4_DST, 'bytes'],
  CTA_IP_V6_SRC: [ct.CTA_IP_V6_SRC, 'bytes'],
  CTA_IP_V6_DST: [ct.CTA_IP_V6_DST, 'bytes'],
});
const CTA_PROTO = attributeSet('CTA_PROTO', {
  CTA_PROTO_NUM: [ct.CTA_PROTO_NUM, 'u8'],
  CTA_PROTO_SRC_PORT: [ct.CTA_PROTO_SRC_PORT, 'be16'],
  CTA_PROTO_DST_PORT: [ct.CTA_PROTO_DST_PORT, 'be16'],
});
const CTA_TUPLE = attributeSet('CTA_TUPLE', {
  CTA_TUPLE_IP: [ct.CTA_TUPLE_IP, CTA_IP],
  CTA_TUPLE_PROTO: [ct.CTA_TUPLE_PROTO, CTA_PROTO],
});
/** What a listed flow says, besides what is only counted. */
const CTA = attributeSet('CTA', {
  CTA_TUPLE_ORIG: [ct.CTA_TUPLE_ORIG, CTA_TUPLE],
  CTA_TUPLE_REPLY: [ct.CTA_TUPLE_REPLY, CTA_TUPLE],
  CTA_STATUS: [3, 'be32'],
  CTA_TIMEOUT: [7, 'be32'],
  CTA_MARK: [8, 'be32'],
  CTA_ID: [ct.CTA_ID, 'be32'],
  CTA_ZONE: [ct.CTA_ZONE, 'be16'],
  CTA_FILTER: [
    ct.CTA_FILTER,
    attributeSet('CTA_FILTER', { CTA_FILTER_ORIG_FLAGS: [1, 'u32'], CTA_FILTER_REPLY_FLAGS: [2, 'u32'] }),
  ],
});

interface Subsystem {
  /** By number. */
  readonly messages: ReadonlyMap<number, string>;
  // biome-ignore lint/suspicious/noExplicitAny: attributes of any declaration
  readonly attributes: AttributeSet<any>;
  /** @param message its name */
  readonly nested?: (message: string) => NestedBytes;
}

const SUBSYSTEMS: ReadonlyMap<number, Subsystem> = new Map([
  [
    NFNL_SUBSYS_CTNETLINK,
    {
      messages: byNumber({
        IPCTNL_MSG_CT_NEW: ct.IPCTNL_MSG_CT_NEW,
        IPCTNL_MSG_CT_GET: ct.IPCTNL_MSG_CT_GET,
        IPCTNL_MSG_CT_DELETE: ct.IPCTNL_MSG_CT_DELETE,
      }),
      attributes: CTA,
    },
  ],
  [NFNL_SUBSYS_IPSET, { messages: byNumber(IPSET_CMD), attributes: IPSET_ATTRIBUTES, nested: ipsetNests }],
  [NFNL_SUBSYS_ACCT, { messages: byNumber({ NFNL_MSG_ACCT_NEW, NFNL_MSG_ACCT_GET }), attributes: NFACCT_ATTRIBUTES }],
]);

/**
 * A message of ipset, ctnetlink or nfacct; undefined for other subsystems of nfnetlink.
 *
 * @throws ERR_NETLINK_DECODE
 */
export function netfilterWords({ type, payload }: NetlinkMessage): MessageWords | undefined {
  const subsystem = SUBSYSTEMS.get(type >> 8);
  const name = subsystem?.messages.get(type & 0xff);
  if (!subsystem || name === undefined) return undefined;
  const text = attributesText(subsystem.attributes, payload, nfgenmsg.size, subsystem.nested?.(name));
  return { name, lines: text === '' ? [] : [text] };
}

/** What makes a set, and what its members are, have the same number. */
function ipsetNests(message: string): NestedBytes {
  const isSet = message === 'IPSET_CMD_CREATE' || message === 'IPSET_CMD_LIST';
  const member = (value: Uint8Array) => attributesText(IPSET_MEMBER, value);
  return {
    IPSET_ATTR_DATA: isSet ? (value) => attributesText(IPSET_SHAPE, value) : member,
    IPSET_ATTR_ADT: (list) =>
      [...readAttributes(list, 0, 'IPSET_ATTR_ADT')].map(({ value }) => `{ ${member(value)} }`).join(' '),
  };
}
