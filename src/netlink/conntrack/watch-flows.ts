import { readMessages } from '../message.ts';
import { openSocket } from '../socket.ts';
import { NETLINK_NETFILTER } from '../uapi/netlink.ts';
import { NFNL_SUBSYS_CTNETLINK, nfnlType } from '../uapi/nfnetlink.ts';
import {
  IPCTNL_MSG_CT_DELETE,
  IPCTNL_MSG_CT_NEW,
  NFNLGRP_CONNTRACK_DESTROY,
  NFNLGRP_CONNTRACK_NEW,
  NFNLGRP_CONNTRACK_UPDATE,
} from '../uapi/nfnetlink-conntrack.ts';
import { type SocketWatch, watchSocket } from '../watch/index.ts';
import { decodeFlow, type Flow, type FlowFilter, isAnswered, passesFilter } from './flow.ts';

/** Something happened to a flow. */
export interface FlowEvent {
  /** `changed`: it began, or is in another state. */
  readonly kind: 'changed' | 'ended';
  readonly flow: Flow;
  /** A packet came back. */
  readonly answered: boolean;
}

/**
 * Tells what happens to the flows of the calling thread's namespace, until `close`. While anybody listens the kernel writes a
 * message for each new flow of the node, so this is for a few seconds; `watchUnanswered` is for always.
 *
 * @param listener 'lost': events came faster than they were read
 * @param filter flows it refuses are not decoded any further
 * @throws ERR_NETLINK_SOCKET
 */
export function watchFlows(listener: (event: FlowEvent | 'lost') => void, filter: FlowFilter): SocketWatch {
  const groups = [NFNLGRP_CONNTRACK_NEW, NFNLGRP_CONNTRACK_UPDATE, NFNLGRP_CONNTRACK_DESTROY];
  return watchSocket(openSocket(NETLINK_NETFILTER, { groups }), (datagram) => {
    if (datagram === 'lost') return listener('lost');
    for (const { type, payload } of readMessages(datagram)) {
      const isEnd = type === nfnlType(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE);
      if (!isEnd && type !== nfnlType(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW)) continue;
      if (!passesFilter(payload, filter)) continue;
      const [flow, answered] = [decodeFlow(payload), isAnswered(payload)];
      listener({ kind: isEnd ? 'ended' : 'changed', flow, answered });
    }
  });
}
