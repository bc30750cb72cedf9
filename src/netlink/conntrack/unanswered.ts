import { readMessages } from '../message.ts';
import { openSocket } from '../socket.ts';
import {
  BPF_JUMP_IF_SET,
  BPF_LOAD,
  BPF_LOAD_CONSTANT,
  BPF_LOAD_FROM_X,
  BPF_LOAD_X_CONSTANT,
  BPF_RETURN,
  BPF_TAKE_ALL,
  BPF_TAKE_NOTHING,
  BPF_TO_X,
  SKF_AD_NLATTR,
} from '../uapi/filter.ts';
import { NETLINK_NETFILTER, NLA_HDRLEN, NLMSG_HDRLEN } from '../uapi/netlink.ts';
import { NFNL_SUBSYS_CTNETLINK, nfgenmsg, nfnlType } from '../uapi/nfnetlink.ts';
import {
  CTA_STATUS,
  IPCTNL_MSG_CT_DELETE,
  IPS_SEEN_REPLY,
  NFNLGRP_CONNTRACK_DESTROY,
} from '../uapi/nfnetlink-conntrack.ts';
import { type Instruction, program, type SocketWatch, watchSocket } from '../watch/index.ts';
import { decodeFlow, type Flow } from './flow.ts';

/** Goes on behind itself when CTA_STATUS is there without the bit, and one instruction further when not. */
const FIND_STATUS: readonly Instruction[] = [
  { code: BPF_LOAD_CONSTANT, k: NLMSG_HDRLEN + nfgenmsg.size },
  { code: BPF_LOAD_X_CONSTANT, k: CTA_STATUS },
  { code: BPF_LOAD.u32, k: SKF_AD_NLATTR },
  { code: BPF_TO_X },
  // No such attribute: on to the end.
  { code: BPF_JUMP_IF_SET, jt: 0, jf: 3, k: 0xffff_ffff },
  { code: BPF_LOAD_FROM_X, k: NLA_HDRLEN },
  { code: BPF_JUMP_IF_SET, jt: 1, jf: 0, k: IPS_SEEN_REPLY },
];
const TAKE: Instruction = { code: BPF_RETURN, k: BPF_TAKE_ALL };
const DROP: Instruction = { code: BPF_RETURN, k: BPF_TAKE_NOTHING };

/** How much of what ends unanswered is looked at. */
export interface UnansweredBounds {
  /** At most so many flows in one period; then none until it is over. @default 100 */
  readonly flows?: number;
  /** Milliseconds. @default 10000 */
  readonly periodMs?: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Calls back once, after so many milliseconds. */
  readonly after: (fn: () => void, ms: number) => { cancel(): void };
}

/** What has to be known of the listening. */
export interface UnansweredWatch extends SocketWatch {
  /** Periods in which there were more flows than are looked at, or some were lost. */
  readonly cutShort: number;
}

/**
 * Tells the flows of the calling thread's namespace that end without ever having been answered, until `close`. The kernel drops
 * all others before anybody is woken: what is answered costs this process nothing. Entries made before any program listened are
 * not told (`nf_conntrack_events` 2: those have no place for events).
 *
 * @throws ERR_NETLINK_SOCKET
 */
export function watchUnanswered(listener: (flow: Flow) => void, bounds: UnansweredBounds): UnansweredWatch {
  const { flows = 100, periodMs = 10_000, now, after } = bounds;
  const listening = program([...FIND_STATUS, TAKE, DROP]);
  const resting = program([DROP]);
  const socket = openSocket(NETLINK_NETFILTER, {
    groups: [NFNLGRP_CONNTRACK_DESTROY],
    bufferBytes: 256 << 10,
    filter: listening,
  });
  let began = now();
  let seen = 0;
  let cutShort = 0;
  let rest: { cancel(): void } | undefined;
  const begin = () => {
    rest = undefined;
    began = now();
    seen = 0;
  };
  const cut = () => {
    if (rest) return;
    cutShort++;
    socket.attachFilter(resting);
    rest = after(() => {
      begin();
      socket.attachFilter(listening);
    }, periodMs);
  };
  const watch = watchSocket(socket, (datagram) => {
    // What waited in the queue when the rest began.
    if (rest) return;
    if (now() - began >= periodMs) begin();
    if (datagram === 'lost' || ++seen > flows) return cut();
    try {
      for (const flow of endedFlows(datagram)) listener(flow);
    } catch {
      // Of a form this program does not know: as if it had been lost.
      cut();
    }
  });
  return {
    catchUp: () => watch.catchUp(),
    close() {
      rest?.cancel();
      watch.close();
    },
    get cutShort() {
      return cutShort;
    },
  };
}

function endedFlows(datagram: Uint8Array): Flow[] {
  return [...readMessages(datagram)]
    .filter(({ type }) => type === nfnlType(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE))
    .flatMap(({ payload }) => decodeFlow(payload) ?? []);
}
