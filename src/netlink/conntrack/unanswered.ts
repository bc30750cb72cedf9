import { readMessages } from '../message.ts';
import { openSocket } from '../socket.ts';
import { BPF_RETURN, BPF_TAKE_ALL, BPF_TAKE_NOTHING } from '../uapi/filter.ts';
import { NETLINK_NETFILTER } from '../uapi/netlink.ts';
import { NFNL_SUBSYS_CTNETLINK, nfnlType } from '../uapi/nfnetlink.ts';
import { IPCTNL_MSG_CT_DELETE, IPS_SEEN_REPLY, NFNLGRP_CONNTRACK_DESTROY } from '../uapi/nfnetlink-conntrack.ts';
import { type Instruction, program, type SocketWatch, watchSocket } from '../watch/index.ts';
import { decodeFlow, type Flow } from './flow.ts';
import { findStatus } from './status-filter.ts';

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
  const listening = program([...findStatus(IPS_SEEN_REPLY), TAKE, DROP]);
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
