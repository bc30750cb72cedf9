import { type NetlinkMessage, readMessages } from '../../message.ts';
import { openSocket, type SocketOptions } from '../../socket.ts';
import { NETLINK_NETFILTER } from '../../uapi/netlink.ts';
import * as uapi from '../../uapi/nf-tables.ts';
import { nfnlType } from '../../uapi/nfnetlink.ts';
import { watchSocket, withoutPorts } from '../../watch/index.ts';
import type { NftFamily } from '../object/model.ts';
import * as decode from '../object/object-decode.ts';
import { addListener } from './absence.ts';
import type { NftEvent } from './monitor-event.ts';
import { isOwnPort, onOwnPorts, ownPorts } from './own-ports.ts';

type Told = Extract<NftEvent, { kind: 'new' | 'deleted' }>;
type ObjectDecoder = (payload: Uint8Array, family: NftFamily) => Told['object'] | undefined;

const OBJECTS = new Map<number, readonly [Told['kind'], ObjectDecoder]>([
  [uapi.NFT_MSG_NEWTABLE, ['new', decode.decodeTable]],
  [uapi.NFT_MSG_DELTABLE, ['deleted', decode.decodeTable]],
  [uapi.NFT_MSG_NEWCHAIN, ['new', decode.decodeChain]],
  [uapi.NFT_MSG_DELCHAIN, ['deleted', decode.decodeChain]],
  [uapi.NFT_MSG_NEWRULE, ['new', decode.decodeRule]],
  [uapi.NFT_MSG_DELRULE, ['deleted', decode.decodeRule]],
  [uapi.NFT_MSG_NEWSET, ['new', decode.decodeSet]],
  [uapi.NFT_MSG_DELSET, ['deleted', decode.decodeSet]],
  [uapi.NFT_MSG_NEWSETELEM, ['new', decode.decodeElementList]],
  [uapi.NFT_MSG_DELSETELEM, ['deleted', decode.decodeElementList]],
  [uapi.NFT_MSG_NEWOBJ, ['new', decode.decodeCounter]],
  [uapi.NFT_MSG_DELOBJ, ['deleted', decode.decodeCounter]],
]);

/** What to listen to, and with how much room. */
export interface NftWatchOptions extends Pick<SocketOptions, 'bufferBytes'> {
  /**
   * Of what this process commits tells the generations alone; the kernel drops the rest before anybody is woken. To read
   * 100,000 elements of its own would keep a listener busy for as long as the kernel. @default all is told
   */
  readonly withoutOwn?: boolean;
}

const GENERATION = nfnlType(uapi.NFNL_SUBSYS_NFTABLES, uapi.NFT_MSG_NEWGEN);

/**
 * Tells everything that changes in nf_tables of the calling thread's namespace (`inNetns` for another), by whomever, from
 * now on until `close`. While nothing changes nothing runs, and reading never holds up the event loop.
 *
 * Of what this process commits with `commitAsync`, its generation alone: no monitor listens meanwhile (absence.ts), and what others did
 * at that time is an overrun.
 *
 * @throws ERR_NETLINK_SOCKET
 */
export function watchNftables(
  listener: (event: NftEvent) => void,
  { withoutOwn = false, ...options }: NftWatchOptions = {},
): { close(): void } {
  const filter = () => withoutPorts(ownPorts(), [GENERATION]);
  const group = uapi.NFNLGRP_NFTABLES;
  const socket = openSocket(NETLINK_NETFILTER, {
    ...options,
    groups: [group],
    ...(withoutOwn && { filter: filter() }),
  });
  const stop = withoutOwn ? onOwnPorts(() => socket.attachFilter(filter())) : () => {};
  let open = true;
  const watch = watchSocket(socket, (datagram) => {
    for (const event of readEvents(datagram)) if (open) listener(event);
  });
  const remove = addListener({
    leave: () => socket.leaveGroup(group),
    rejoin: () => socket.joinGroup(group),
    missed(what) {
      // What came before it first.
      watch.catchUp();
      if (open) listener(what === 'by others' ? { kind: 'overrun' } : ownGeneration(what.own));
    },
  });
  return {
    close() {
      open = false;
      remove();
      stop();
      watch.close();
    },
  };
}

/** As the kernel would tell it, but for the thread. */
function ownGeneration(generation: number): NftEvent {
  return { kind: 'generation', generation, processId: process.pid, processName: process.title, own: true };
}

function readEvents(datagram: Uint8Array | 'lost'): NftEvent[] {
  if (datagram === 'lost') return [{ kind: 'overrun' }];
  try {
    return decodeEvents(datagram);
  } catch {
    // What this program cannot read is as good as lost.
    return [{ kind: 'overrun' }];
  }
}

/** The events in a datagram of the multicast group; those the model has no place for are left out. Throws ERR_NETLINK_DECODE. */
export function decodeEvents(datagram: Uint8Array): NftEvent[] {
  return [...readMessages(datagram)].flatMap((message) => decodeEvent(message) ?? []);
}

function decodeEvent({ type, portId, payload }: NetlinkMessage): NftEvent | undefined {
  if (type === GENERATION) {
    return { kind: 'generation', ...decode.decodeGeneration(payload), own: isOwnPort(portId) };
  }
  if (type >> 8 !== uapi.NFNL_SUBSYS_NFTABLES) return undefined;
  const known = OBJECTS.get(type & 0xff);
  const family = known && decode.decodeFamily(payload);
  const object = family && known[1](payload, family);
  return object && { kind: known[0], object };
}
