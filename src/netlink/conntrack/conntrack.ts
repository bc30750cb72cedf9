import {
  formatIp,
  formatIpPort,
  type IpAddress,
  type IpFamily,
  ifPresent,
  ipEquals,
  isNotFound,
} from '../../core/index.ts';
import { familyNumber } from '../address-family.ts';
import { encodeBody } from '../attribute-set.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { NFNETLINK_V0, NFNL_SUBSYS_CTNETLINK, nfgenmsg, nfnlType } from '../uapi/nfnetlink.ts';
import {
  CTA_DELETION,
  CTA_FILTER_F_IP_DST,
  CTA_FILTER_F_PROTO_DST_PORT,
  CTA_FILTER_F_PROTO_NUM,
  CTA_LISTING,
  IPCTNL_MSG_CT_DELETE,
  IPCTNL_MSG_CT_GET,
  IPS_ASSURED,
  IPS_SEEN_REPLY,
} from '../uapi/nfnetlink-conntrack.ts';
import { AF_UNSPEC } from '../uapi/rtnetlink.ts';
import { decodeFlow, type Flow, type FlowFilter, flowStatus, isAnswered, isInTimeWait, passesFilter } from './flow.ts';

/** How many deletions go into one datagram: their acknowledgements, 1 KiB each, stay far below the receive queue. */
const DELETIONS_AT_ONCE = 256;
/** So many flows tell whether one in a thousand can make room: seldom enough that hardly a new connection finds one near its place. */
const SAMPLE = 4096;

/** Where the first packet of a flow went. */
export interface FlowDestination {
  /** IPPROTO_*. */
  readonly protocol: number;
  readonly port: number;
  /** Missing: any address. */
  readonly ip?: IpAddress | undefined;
}

/** Which flows to list; what is left out does not restrict. */
export interface FlowListing {
  readonly family: IpFamily;
  /**
   * Only flows to there. Picked by the kernel since Linux 5.8 (IPv6: the port only), which makes the listing as cheap as
   * the flows that are in it; before that all are read and the others passed over.
   */
  readonly destination?: FlowDestination | undefined;
  /** Only flows of this IPPROTO_*, picked in the same way. */
  readonly protocol?: number | undefined;
  /** Only flows of which nothing has come back. Picked by the kernel since Linux 5.18. @default false */
  readonly unanswered?: boolean | undefined;
  /** Asked for each flow as it is read: of one it refuses nothing is kept. */
  readonly filter?: FlowFilter | undefined;
}

/**
 * The tracked flows of the socket's namespace. Needs CAP_NET_ADMIN.
 *
 * @param netlink a conversation of protocol NETLINK_NETFILTER
 * @throws KernelError, ERR_NETLINK_DUMP_INTERRUPTED, ERR_NETLINK_DECODE
 */
export function listFlows(netlink: Netlink, listing: FlowListing): Flow[] {
  return [...walkFlows(netlink, listing)];
}

/** As `listFlows`, but each flow is decoded only when it is asked for; all are read, and the filter asked, when the first one is. */
export function* walkFlows(netlink: Netlink, listing: FlowListing): Generator<Flow> {
  for (const { flow } of decodeListing(netlink, listing)) yield flow;
}

/** A tracked flow, and how it stands. */
export interface FlowState {
  readonly flow: Flow;
  /** Whether anything ever came back. */
  readonly answered: boolean;
  /** A TCP connection that both sides have ended: its ports may be given to another. */
  readonly over: boolean;
}

/** The tracked flows, and how each stands. As `listFlows` otherwise. */
export function listFlowStates(netlink: Netlink, listing: FlowListing): FlowState[] {
  return Array.from(decodeListing(netlink, listing), ({ flow, payload }) => {
    return { flow, answered: isAnswered(payload), over: isInTimeWait(payload) };
  });
}

/**
 * Of some flows, which ones the kernel has in no order, those that it throws out to make room for new ones: those that are not
 * assured (early_drop_list, net/netfilter/nf_conntrack_core.c).
 *
 * @throws KernelError, ERR_NETLINK_DECODE
 */
export function sampleReplaceable(netlink: Netlink): { readonly seen: number; readonly replaceable: number } {
  const body = encodeBody(nfgenmsg, { nfgen_family: AF_UNSPEC, version: NFNETLINK_V0 }, CTA_LISTING, {});
  const listing = { ...flowListing({ family: 'IPv4' }), object: 'some flows of all families', payload: body };
  const payloads = netlink.dumpBeginning(listing, SAMPLE);
  const replaceable = payloads.filter((payload) => (flowStatus(payload) & IPS_ASSURED) === 0).length;
  return { seen: payloads.length, replaceable };
}

function* decodeListing(
  netlink: Netlink,
  listing: FlowListing,
): Generator<{ readonly flow: Flow; readonly payload: Uint8Array }> {
  const { destination, protocol = destination?.protocol, filter, unanswered = false } = listing;
  const wanted: FlowFilter = (number, port) =>
    (protocol === undefined || number === protocol) &&
    (!destination || port === destination.port) &&
    (!filter || filter(number, port));
  const isWanted = (payload: Uint8Array) => !(unanswered && isAnswered(payload)) && passesFilter(payload, wanted);
  for (const payload of netlink.dump(flowListing(listing), isWanted)) {
    const flow = decodeFlow(payload);
    if (!destination?.ip || ipEquals(flow.original.destination, destination.ip)) yield { flow, payload };
  }
}

/** The request behind `listFlows`. */
export function flowListing(listing: FlowListing): NetlinkRequest {
  const { family, destination, protocol = destination?.protocol, unanswered = false } = listing;
  const ip = destination?.ip;
  // With an IPv6 address in the filter, Linux 6.18 did not list the flow that has it (seen in the lab).
  const ipv4 = ip?.family === 'IPv4' ? ip : undefined;
  const flags =
    (protocol === undefined ? 0 : CTA_FILTER_F_PROTO_NUM) |
    (destination ? CTA_FILTER_F_PROTO_DST_PORT : 0) |
    (ipv4 ? CTA_FILTER_F_IP_DST : 0);
  const where = destination ? ` to ${ip ? formatIp(ip) : 'any address'} port ${destination.port}` : '';
  return {
    type: nfnlType(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_GET),
    flags: 0,
    operation: 'IPCTNL_MSG_CT_GET',
    object: `${unanswered ? 'unanswered ' : ''}${family} flows${protocol === undefined ? '' : ` of protocol ${protocol}`}${where}`,
    payload: encodeBody(nfgenmsg, { nfgen_family: familyNumber(family), version: NFNETLINK_V0 }, CTA_LISTING, {
      ...(unanswered && { CTA_STATUS: 0, CTA_STATUS_MASK: IPS_SEEN_REPLY }),
      ...(flags !== 0 && {
        CTA_TUPLE_ORIG: {
          CTA_TUPLE_IP: ipv4 && { CTA_IP_V4_DST: ipv4.bytes },
          CTA_TUPLE_PROTO: { CTA_PROTO_NUM: protocol, CTA_PROTO_DST_PORT: destination?.port },
        },
        CTA_FILTER: { CTA_FILTER_ORIG_FLAGS: flags, CTA_FILTER_REPLY_FLAGS: 0 },
      }),
    }),
  };
}

/**
 * Deletes these flows, each only while it has its ID: one that ended and was begun anew since it was listed mostly stays
 * (see `Flow`). A flow that is gone already counts as deleted.
 *
 * @throws KernelError when one is refused for another reason; those after it in the list may be gone or not
 */
export function deleteFlows(netlink: Netlink, flows: readonly Flow[]): void {
  for (let start = 0; start < flows.length; start += DELETIONS_AT_ONCE) {
    const requests = flows.slice(start, start + DELETIONS_AT_ONCE).map(flowDeletion);
    try {
      netlink.execute(...requests);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      // Only the first refusal of a datagram is told: whether there was another reason as well, each one has to say.
      for (const request of requests) ifPresent(() => netlink.execute(request));
    }
  }
}

/**
 * Deletes one flow. ENOENT when it is gone (`isNotFound`).
 *
 * The tuple is always there: a deletion without one would empty the whole table.
 */
export function flowDeletion(flow: Flow): NetlinkRequest {
  const { family, original, protocol, tuple, id, zone } = flow;
  const from = formatIpPort(original.source, original.sourcePort);
  const to = formatIpPort(original.destination, original.destinationPort);
  return {
    type: nfnlType(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE),
    flags: 0,
    operation: 'IPCTNL_MSG_CT_DELETE',
    object: `the flow of protocol ${protocol} from ${from} to ${to}`,
    payload: encodeBody(nfgenmsg, { nfgen_family: familyNumber(family), version: NFNETLINK_V0 }, CTA_DELETION, {
      CTA_TUPLE_ORIG: tuple,
      CTA_ID: id === 0 ? undefined : id,
      CTA_ZONE: zone === 0 ? undefined : zone,
    }),
  };
}
