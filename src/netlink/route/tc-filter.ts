import { ByteWriter } from '../../core/index.ts';
import { attributeSet, encodeBody, encodeNest } from '../attribute-set.ts';
import { swap16 } from '../integer.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { NLM_F_CREATE, NLM_F_EXCL } from '../uapi/netlink.ts';
import {
  ETH_P_ALL,
  TC_ACT_STOLEN,
  TC_U32_TERMINAL,
  TCA_EGRESS_REDIR,
  TCA_MIRRED,
  TCA_U32,
  tc_mirred,
  tc_u32_sel_with_one_key,
} from '../uapi/pkt-cls.ts';
import { CLSACT_EGRESS, CLSACT_INGRESS, INGRESS_HANDLE, TCA, tcmsg } from '../uapi/pkt-sched.ts';
import { RTM_GETTFILTER, RTM_NEWTFILTER } from '../uapi/rtnetlink.ts';

const PRIORITY = 1;
/** `1:1`: of no meaning at an ingress qdisc, which has no classes, and yet required. */
const CLASS_ID = 0x1_0001;

/** A filter at an ingress qdisc. */
export interface IngressFilter {
  /** Index of the device. */
  readonly index: number;
  /** `u32`, `matchall`, `bpf`, ... */
  readonly kind: string;
  /** Index of the device its first action sends packets out of instead; undefined when it does something else. */
  readonly redirectsTo: number | undefined;
}

/**
 * Has everything that device `from` receives leave by device `to` instead. `from` needs an ingress qdisc.
 *
 * A `u32` filter that compares nothing, because `matchall` is missing in small kernels.
 */
export function redirectIngress(from: number, to: number): NetlinkRequest {
  const selector = new ByteWriter(tc_u32_sel_with_one_key.size);
  tc_u32_sel_with_one_key.encode(selector, { flags: TC_U32_TERMINAL, nkeys: 1 });
  const mirred = new ByteWriter(tc_mirred.size);
  tc_mirred.encode(mirred, { action: TC_ACT_STOLEN, eaction: TCA_EGRESS_REDIR, ifindex: to });
  const head = { tcm_ifindex: from, tcm_parent: INGRESS_HANDLE, tcm_info: (PRIORITY << 16) | swap16(ETH_P_ALL) };
  return {
    type: RTM_NEWTFILTER,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    operation: 'RTM_NEWTFILTER',
    object: `redirection of what device ${from} receives to device ${to}`,
    payload: encodeBody(tcmsg, head, TCA, {
      TCA_KIND: 'u32',
      TCA_OPTIONS: encodeNest(TCA_U32, {
        TCA_U32_CLASSID: CLASS_ID,
        TCA_U32_ACT: {
          FIRST: {
            TCA_ACT_KIND: 'mirred',
            TCA_ACT_OPTIONS: encodeNest(TCA_MIRRED, { TCA_MIRRED_PARMS: mirred.written() }),
          },
        },
        TCA_U32_SEL: selector.written(),
      }),
    }),
  };
}

/** The filters of what device `index` receives, at an ingress qdisc. Throws KernelError, ERR_NETLINK_DECODE. */
export function listIngressFilters(netlink: Netlink, index: number): IngressFilter[] {
  return netlink.dump(filterListing(index, INGRESS_HANDLE)).map(decodeIngressFilter);
}

/**
 * All that look at what a device receives and sends, beside its queues: those of qdiscs `ingress` and `clsact`. Throws
 * as `listIngressFilters`.
 */
export function listLinkFilters(netlink: Netlink, index: number): IngressFilter[] {
  const parents = [CLSACT_INGRESS, CLSACT_EGRESS];
  return parents.flatMap((parent) =>
    netlink.dump(filterListing(index, parent), (payload) => !isTableOfU32(payload)).map(decodeIngressFilter),
  );
}

/** Where filters have what they do beside choosing a class: actions, and policing as it was before there were any; <linux/pkt_cls.h>. */
const ACTIONS: Readonly<Record<string, readonly number[]>> = {
  u32: [6, 7],
  fw: [2, 4],
  flower: [3],
  basic: [3, 4],
  matchall: [2],
  cgroup: [1, 2],
};

/** The kinds of those at a queue that do more than choose a class of it. Throws as `listIngressFilters`. */
export function listActingFilters(netlink: Netlink, index: number, qdisc: number): string[] {
  return netlink.dump(filterListing(index, qdisc), (payload) => !isTableOfU32(payload)).flatMap(actingKind);
}

function actingKind(payload: Uint8Array): string[] {
  const { TCA_KIND: kind = '', TCA_OPTIONS: options } = TCA.decode(payload, tcmsg.size);
  if (!Object.hasOwn(ACTIONS, kind)) return [kind];
  // Of some the kernel lists the priority in front of what is there at it.
  const given = options ? OPTIONS.decode(options).unknown.map(({ type }) => type) : [];
  return given.some((type) => ACTIONS[kind]?.includes(type)) ? [kind] : [];
}

const OPTIONS = attributeSet('TCA_OPTIONS', {});

/**
 * Filters of u32 are listed behind their priority and the hash table that holds them, whose handles have no number of a
 * filter (TC_U32_NODE).
 */
function isTableOfU32(payload: Uint8Array): boolean {
  return TCA.decode(payload, tcmsg.size).TCA_KIND === 'u32' && (tcmsg.decode(payload).tcm_handle & 0xfff) === 0;
}

/** The request behind both. */
function filterListing(index: number, parent: number): NetlinkRequest {
  return {
    type: RTM_GETTFILTER,
    flags: 0,
    operation: 'RTM_GETTFILTER',
    object: `filters of device ${index}`,
    payload: encodeBody(tcmsg, { tcm_ifindex: index, tcm_parent: parent }, TCA, {}),
  };
}

/** Decodes the payload of an RTM_NEWTFILTER. Throws ERR_NETLINK_DECODE. */
export function decodeIngressFilter(payload: Uint8Array): IngressFilter {
  const header = tcmsg.decode(payload);
  const { TCA_KIND: kind = '', TCA_OPTIONS: options } = TCA.decode(payload, tcmsg.size);
  const redirectsTo = kind === 'u32' && options ? decodeRedirection(options) : undefined;
  return { index: header.tcm_ifindex, kind, redirectsTo };
}

function decodeRedirection(options: Uint8Array): number | undefined {
  const action = TCA_U32.decode(options).TCA_U32_ACT?.FIRST;
  if (action?.TCA_ACT_KIND !== 'mirred' || !action.TCA_ACT_OPTIONS) return undefined;
  const { TCA_MIRRED_PARMS: parms } = TCA_MIRRED.decode(action.TCA_ACT_OPTIONS);
  if (!parms) return undefined;
  const { eaction, ifindex } = tc_mirred.decode(parms);
  return eaction === TCA_EGRESS_REDIR ? ifindex : undefined;
}
