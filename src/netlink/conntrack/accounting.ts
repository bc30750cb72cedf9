import { ifPresent, KernelError } from '../../core/index.ts';
import { encodeBody } from '../attribute-set.ts';
import { readBe64 } from '../integer.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { NLM_F_CREATE } from '../uapi/netlink.ts';
import { NFNETLINK_V0, nfgenmsg, nfnlType } from '../uapi/nfnetlink.ts';
import { NFACCT_ATTRIBUTES, NFNL_MSG_ACCT_GET, NFNL_MSG_ACCT_NEW, NFNL_SUBSYS_ACCT } from '../uapi/nfnetlink-acct.ts';

/** What a named counter holds. */
export interface Accounting {
  readonly packets: bigint;
  readonly bytes: bigint;
}

/**
 * Makes a named counter (nfacct) in the socket's namespace; one that exists stays as it is. Rules add to it by
 * `-m nfacct --nfacct-name NAME`.
 *
 * @param netlink a conversation of protocol NETLINK_NETFILTER
 * @param name at most 31 characters
 * @throws KernelError; `isUnsupported` or EINVAL on a kernel without nfnetlink_acct
 */
export function ensureAccounting(netlink: Netlink, name: string): void {
  // They outlive the agent, so all but the first start find them there.
  if (getAccounting(netlink, name)) return;
  try {
    netlink.execute(accountingRequest('NFNL_MSG_ACCT_NEW', NFNL_MSG_ACCT_NEW, NLM_F_CREATE, name));
  } catch (error) {
    // Made by somebody else meanwhile. The kernel's word for "exists": https://elixir.bootlin.com/linux/v6.1/source/net/netfilter/nfnetlink_acct.c
    if (!(error instanceof KernelError && error.errnoName === 'EBUSY')) throw error;
  }
}

/** The counter of that name; undefined when there is none. Throws KernelError, ERR_NETLINK_DECODE. */
export function getAccounting(netlink: Netlink, name: string): Accounting | undefined {
  const request = accountingRequest('NFNL_MSG_ACCT_GET', NFNL_MSG_ACCT_GET, 0, name);
  const payload = ifPresent(() => netlink.query(request));
  return payload && decodeAccounting(payload);
}

/** Exported for tests. */
export function decodeAccounting(payload: Uint8Array): Accounting {
  nfgenmsg.decode(payload);
  const { NFACCT_PKTS, NFACCT_BYTES } = NFACCT_ATTRIBUTES.decode(payload, nfgenmsg.size);
  return { packets: readBe64(NFACCT_PKTS, 'NFACCT_PKTS'), bytes: readBe64(NFACCT_BYTES, 'NFACCT_BYTES') };
}

/** Exported for tests. */
export function accountingRequest(operation: string, message: number, flags: number, name: string): NetlinkRequest {
  return {
    type: nfnlType(NFNL_SUBSYS_ACCT, message),
    flags,
    operation,
    object: `counter "${name}"`,
    payload: encodeBody(nfgenmsg, { nfgen_family: 0, version: NFNETLINK_V0 }, NFACCT_ATTRIBUTES, { NFACCT_NAME: name }),
  };
}
