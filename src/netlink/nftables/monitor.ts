import { type NetlinkMessage, readMessages } from '../message.ts';
import { openSocket, type SocketOptions } from '../socket.ts';
import { NETLINK_NETFILTER } from '../uapi/netlink.ts';
import * as uapi from '../uapi/nf-tables.ts';
import { nfnlType } from '../uapi/nfnetlink.ts';
import { watchSocket } from '../watch/index.ts';
import type { NftEvent } from './monitor-event.ts';
import type { NftFamily } from './object/model.ts';
import * as decode from './object/object-decode.ts';
import { isOwnPort } from './own-ports.ts';

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
   * Whose tables' objects are told; generations are in any case. Those of others are not decoded: beside a transaction with
   * 100,000 elements of IPv4 that would keep a listener to IPv6 busy for as long as the kernel. @default all families
   */
  readonly family?: NftFamily | undefined;
}

/**
 * Tells everything that changes in nf_tables of the calling thread's namespace (`inNetns` for another), by whomever, from
 * now on until `close`. While nothing changes nothing runs, and reading never holds up the event loop.
 *
 * While a monitor is open, the kernel writes a message for every element of every transaction: whoever is about to add
 * 100,000 may want to close it first, and to compare generations afterwards.
 *
 * @throws ERR_NETLINK_SOCKET
 */
export function watchNftables(
  listener: (event: NftEvent) => void,
  { family, ...options }: NftWatchOptions = {},
): { close(): void } {
  const socket = openSocket(NETLINK_NETFILTER, { ...options, groups: [uapi.NFNLGRP_NFTABLES] });
  let open = true;
  const watch = watchSocket(socket, (datagram) => {
    for (const event of readEvents(datagram, family)) if (open) listener(event);
  });
  return {
    close() {
      open = false;
      watch.close();
    },
  };
}

function readEvents(datagram: Uint8Array | 'lost', family: NftFamily | undefined): NftEvent[] {
  if (datagram === 'lost') return [{ kind: 'overrun' }];
  try {
    return decodeEvents(datagram, family);
  } catch {
    // What this program cannot read is as good as lost.
    return [{ kind: 'overrun' }];
  }
}

/**
 * The events in a datagram of the multicast group; those the model has no place for are left out, and so are objects of
 * other families than the wanted one. Throws ERR_NETLINK_DECODE.
 */
export function decodeEvents(datagram: Uint8Array, wanted?: NftFamily): NftEvent[] {
  return [...readMessages(datagram)].flatMap((message) => decodeEvent(message, wanted) ?? []);
}

function decodeEvent({ type, portId, payload }: NetlinkMessage, wanted: NftFamily | undefined): NftEvent | undefined {
  if (type === nfnlType(uapi.NFNL_SUBSYS_NFTABLES, uapi.NFT_MSG_NEWGEN)) {
    return { kind: 'generation', ...decode.decodeGeneration(payload), own: isOwnPort(portId) };
  }
  if (type >> 8 !== uapi.NFNL_SUBSYS_NFTABLES) return undefined;
  const known = OBJECTS.get(type & 0xff);
  const family = known && decode.decodeFamily(payload);
  if (wanted !== undefined && family !== wanted) return undefined;
  const object = family && known[1](payload, family);
  return object && { kind: known[0], object };
}
