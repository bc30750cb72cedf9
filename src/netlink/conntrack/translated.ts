import { type IpFamily, readBe32 } from '../../core/index.ts';
import { familyNumber, ipFamilyOf } from '../address-family.ts';
import { findAttribute, valueEnd, valueStart } from '../attribute.ts';
import { encodeBody } from '../attribute-set.ts';
import { decodeError } from '../decode-error.ts';
import { type NetlinkRequest, readMessages } from '../message.ts';
import { openSocket } from '../socket.ts';
import { BPF_RETURN, BPF_TAKE_ALL, BPF_TAKE_NOTHING } from '../uapi/filter.ts';
import { NETLINK_NETFILTER } from '../uapi/netlink.ts';
import { NFNETLINK_V0, NFNL_SUBSYS_CTNETLINK, nfgenmsg, nfnlType } from '../uapi/nfnetlink.ts';
import * as uapi from '../uapi/nfnetlink-conntrack.ts';
import { program } from '../watch/index.ts';
import { flowStatus, needAttribute, needWithin, port, topLevelInteger, tupleProtocol } from './flow.ts';
import { findStatus } from './status-filter.ts';

/** What a flow has carried: 0 where the kernel does not count (net.netfilter.nf_conntrack_acct). */
export interface FlowTraffic {
  readonly packetsIn: number;
  readonly packetsOut: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** A flow whose destination was translated: as little of it as counting needs. Out is what its client got. */
export interface TranslatedFlow extends FlowTraffic {
  readonly family: IpFamily;
  /** IPPROTO_*. */
  readonly protocol: number;
  /** Where its first packet went, in network order: a view into the message. */
  readonly destination: Uint8Array;
  readonly port: number;
  /** As in `Flow`. */
  readonly id: number;
}

/** Flows as they begin and end, in a queue of the kernel's. */
export interface TranslatedEvents {
  /**
   * Hands over what waits in the queue, at most so many datagrams. Views are valid during the call alone.
   *
   * @returns whether nothing is left
   */
  read(listener: (kind: 'begun' | 'ended' | 'lost', flow?: TranslatedFlow) => void, atMost: number): boolean;
  close(): void;
}

/** An event takes about a kilobyte of the queue, which the kernel doubles: 16,000 of them. */
const QUEUE_BYTES = 8 << 20;

/**
 * Listens, in the calling thread's namespace, to flows whose destination is translated; the kernel drops the others before they
 * are queued.
 *
 * @param ended tell their end too, which doubles what there is to read
 * @throws ERR_NETLINK_SOCKET
 */
export function listenToTranslated({ ended }: { readonly ended: boolean }): TranslatedEvents {
  const filter = program([
    ...findStatus(uapi.IPS_DST_NAT),
    { code: BPF_RETURN, k: BPF_TAKE_NOTHING },
    { code: BPF_RETURN, k: BPF_TAKE_ALL },
  ]);
  const groups = [uapi.NFNLGRP_CONNTRACK_NEW, ...(ended ? [uapi.NFNLGRP_CONNTRACK_DESTROY] : [])];
  const socket = openSocket(NETLINK_NETFILTER, { groups, filter, bufferBytes: QUEUE_BYTES });
  const end = nfnlType(NFNL_SUBSYS_CTNETLINK, uapi.IPCTNL_MSG_CT_DELETE);
  return {
    read(listener, atMost) {
      for (let i = 0; i < atMost; i++) {
        const datagram = socket.receiveWaiting();
        if (!datagram) return true;
        if (datagram === 'overrun') listener('lost');
        else {
          for (const { type, payload } of readMessages(datagram)) {
            const flow = decodeTranslated(payload);
            if (flow) listener(type === end ? 'ended' : 'begun', flow);
          }
        }
      }
      return false;
    },
    close: () => socket.close(),
  };
}

/**
 * The request to list the flows whose destination is translated; `decodeTranslated` reads the answers. The kernel picks them since
 * Linux 5.18; before that it tells all flows.
 */
export function translatedListing(family: IpFamily): NetlinkRequest {
  const header = { nfgen_family: familyNumber(family), version: NFNETLINK_V0 };
  const translated = { CTA_STATUS: uapi.IPS_DST_NAT, CTA_STATUS_MASK: uapi.IPS_DST_NAT };
  return {
    type: nfnlType(NFNL_SUBSYS_CTNETLINK, uapi.IPCTNL_MSG_CT_GET),
    flags: 0,
    operation: 'IPCTNL_MSG_CT_GET',
    object: `${family} flows whose destination is translated`,
    payload: encodeBody(nfgenmsg, header, uapi.CTA_LISTING, translated),
  };
}

/** Undefined when its destination is not translated. Throws ERR_NETLINK_DECODE. */
export function decodeTranslated(payload: Uint8Array): TranslatedFlow | undefined {
  if ((flowStatus(payload) & uapi.IPS_DST_NAT) === 0) return undefined;
  const { nfgen_family: number } = nfgenmsg.decode(payload);
  const family = ipFamilyOf(number);
  if (!family) throw decodeError('IPCTNL_MSG_CT_NEW', `family ${number} is neither IPv4 nor IPv6`);
  const tuple = needAttribute(payload, nfgenmsg.size, payload.length, uapi.CTA_TUPLE_ORIG, 'CTA_TUPLE_ORIG');
  const ip = needWithin(payload, tuple, uapi.CTA_TUPLE_IP, 'CTA_TUPLE_IP');
  const type = family === 'IPv4' ? uapi.CTA_IP_V4_DST : uapi.CTA_IP_V6_DST;
  const destination = needWithin(payload, ip, type, 'the destination of CTA_TUPLE_IP');
  const to = counters(payload, uapi.CTA_COUNTERS_ORIG, 'CTA_COUNTERS_ORIG');
  const from = counters(payload, uapi.CTA_COUNTERS_REPLY, 'CTA_COUNTERS_REPLY');
  return {
    family,
    protocol: tupleProtocol(payload, tuple),
    destination: payload.subarray(valueStart(destination), valueEnd(payload, destination)),
    port: port(payload, tuple, uapi.CTA_PROTO_DST_PORT),
    id: topLevelInteger(payload, uapi.CTA_ID, 4, 'CTA_ID'),
    packetsIn: to.packets,
    packetsOut: from.packets,
    bytesIn: to.bytes,
    bytesOut: from.bytes,
  };
}

const NOTHING = { packets: 0, bytes: 0 };

function counters(bytes: Uint8Array, type: number, name: string): typeof NOTHING {
  const at = findAttribute(bytes, nfgenmsg.size, bytes.length, type, name);
  if (at < 0) return NOTHING;
  return {
    packets: counter(bytes, needWithin(bytes, at, uapi.CTA_COUNTERS_PACKETS, 'CTA_COUNTERS_PACKETS')),
    bytes: counter(bytes, needWithin(bytes, at, uapi.CTA_COUNTERS_BYTES, 'CTA_COUNTERS_BYTES')),
  };
}

/** 64 bits in network order; as a number exact up to 9 petabytes. */
function counter(bytes: Uint8Array, at: number): number {
  const start = valueStart(at);
  const found = valueEnd(bytes, at) - start;
  if (found !== 8) throw decodeError('CTA_COUNTERS', `a counter has ${found} bytes, expected 8`);
  return readBe32(bytes, start) * 2 ** 32 + readBe32(bytes, start + 4);
}
