import { readMessages } from '../message.ts';
import { openSocket } from '../socket.ts';
import {
  BPF_JUMP_IF_SET,
  BPF_LOAD,
  BPF_RETURN,
  BPF_TAKE_ALL,
  BPF_TAKE_NOTHING,
  SKF_AD_RANDOM,
} from '../uapi/filter.ts';
import { NETLINK_NETFILTER } from '../uapi/netlink.ts';
import { NFNL_SUBSYS_CTNETLINK, nfnlType } from '../uapi/nfnetlink.ts';
import { IPCTNL_MSG_CT_DELETE, IPS_SEEN_REPLY, NFNLGRP_CONNTRACK_DESTROY } from '../uapi/nfnetlink-conntrack.ts';
import { type Instruction, program, type SocketWatch, watchSocket } from '../watch/index.ts';
import { decodeFlow, type Flow, isAnswered } from './flow.ts';
import { findStatus } from './status-filter.ts';

const TAKE: Instruction = { code: BPF_RETURN, k: BPF_TAKE_ALL };
const DROP: Instruction = { code: BPF_RETURN, k: BPF_TAKE_NOTHING };
/** One of so many flows, by chance, stands for all of them; a power of two. */
const SAMPLED = 1024;
const SAMPLE: readonly Instruction[] = [
  { code: BPF_LOAD.u32, k: SKF_AD_RANDOM },
  { code: BPF_JUMP_IF_SET, jt: 1, jf: 0, k: SAMPLED - 1 },
  TAKE,
  DROP,
];
/** Takes what was not answered, and a sample of the rest. */
const LOOKING = program([...findStatus(IPS_SEEN_REPLY), TAKE, ...SAMPLE]);
const COUNTING = program(SAMPLE);

/** How much of what ends is looked at, where nothing else is said. */
export const UNANSWERED_BOUNDS = { flows: 100, allFlows: 8 * SAMPLED, periodMs: 10_000 } as const;

/** How much of what ends is looked at. */
export interface UnansweredBounds {
  /** At most so many unanswered flows in one period; then none until its end. @default UNANSWERED_BOUNDS */
  readonly flows?: number;
  /**
   * About so many flows of all kinds in one period, as the kernel writes a message for each before it drops it here; then it is not
   * asked for any until its end. At 2.5 us for one, 8192 in ten seconds are a fifth of a per cent of a processor.
   */
  readonly allFlows?: number;
  /** Milliseconds. */
  readonly periodMs?: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Calls back once, after so many milliseconds. */
  readonly after: (fn: () => void, ms: number) => { cancel(): void };
}

/** What has to be known of the listening. */
export interface UnansweredWatch extends SocketWatch {
  /** How often more flows ended than are looked at, or some were lost. */
  readonly cutShort: number;
}

/**
 * Tells the flows of the calling thread's namespace that end without ever having been answered, until `close`. The kernel drops
 * nearly all others before anybody is woken: what is answered costs this process next to nothing. Entries made while no program
 * listened are not told (`nf_conntrack_events` 2: those have no place for events).
 *
 * @throws ERR_NETLINK_SOCKET
 */
export function watchUnanswered(listener: (flow: Flow) => void, bounds: UnansweredBounds): UnansweredWatch {
  const { flows, allFlows, periodMs, now, after } = { ...UNANSWERED_BOUNDS, ...bounds };
  const group = NFNLGRP_CONNTRACK_DESTROY;
  const socket = openSocket(NETLINK_NETFILTER, { groups: [group], bufferBytes: 256 << 10, filter: LOOKING });
  let state: 'looking' | 'counting' | 'away' = 'looking';
  let began = now();
  let [unanswered, all] = [0, 0];
  let cutShort = 0;
  let rest: { cancel(): void } | undefined;
  const begin = () => {
    began = now();
    [unanswered, all] = [0, 0];
  };
  const look = () => {
    begin();
    socket.attachFilter(LOOKING);
    if (state === 'away') socket.joinGroup(group);
    state = 'looking';
  };
  const cut = (to: 'counting' | 'away') => {
    cutShort++;
    unanswered = 0;
    state = to;
    if (to === 'away') socket.leaveGroup(group);
    else socket.attachFilter(COUNTING);
    // What waits was taken in for looking at it.
    while (socket.receiveWaiting() !== undefined);
    rest?.cancel();
    rest = after(look, Math.max(0, began + periodMs - now()));
  };
  const take = (datagram: Uint8Array) => {
    const ended = state === 'looking' ? unansweredFlow(datagram) : undefined;
    if (ended) unanswered++;
    all += ended ? 1 : SAMPLED;
    if (all >= allFlows) cut('away');
    else if (unanswered > flows) cut('counting');
    else if (ended) listener(ended);
  };
  const watch = watchSocket(socket, (datagram) => {
    if (now() - began >= periodMs) begin();
    try {
      if (datagram !== 'lost') take(datagram);
      else if (state === 'looking') cut('counting');
    } catch {
      // Of a form this program does not know: as if it had been lost.
      cut('counting');
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

/** Undefined: it was answered. Throws ERR_NETLINK_DECODE. */
function unansweredFlow(datagram: Uint8Array): Flow | undefined {
  // The kernel puts each of these messages into a datagram of its own.
  const [message] = readMessages(datagram);
  if (message?.type !== nfnlType(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE)) return undefined;
  return isAnswered(message.payload) ? undefined : decodeFlow(message.payload);
}
