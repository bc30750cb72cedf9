import { createRequire } from 'node:module';
import { type NetlinkMessage, readMessages } from './message.ts';
import type { GroupTransport, NetlinkTransport } from './transport.ts';
import { NLMSG_DONE, NLMSG_ERROR } from './uapi/netlink.ts';

/** What a message is in words. */
export interface MessageWords {
  /** The kernel's name of its type: `NFT_MSG_NEWRULE`, `IPSET_CMD_ADD`. Undefined for one without. */
  readonly name?: string | undefined;
  /** What it says. */
  readonly lines: readonly string[];
}

/** Says what messages are about. */
export interface MessageDescriber {
  /**
   * Undefined for what it has no words for.
   *
   * @param isRequest sent by this program
   * @throws ERR_NETLINK_DECODE for a malformed message
   */
  describe(protocol: number, isRequest: boolean, message: NetlinkMessage): MessageWords | undefined;
}

/** The words for messages lie in a file of their own beside the programs, which only a debugged one reads. */
const WORDS_FILE = './netlink-words.js';

/**
 * The transport itself; with NODEPLANE_NETLINK_DEBUG=1 one that prints every message as it goes by. One line each: direction,
 * name, flags, sequence number, and the whole payload as hex; below it what it says in words.
 *
 * @param secret messages hold keys: their bytes are not shown
 */
export function debuggable(transport: GroupTransport, protocol: number, secret = false): GroupTransport {
  if (process.env.NODEPLANE_NETLINK_DEBUG !== '1') return transport;
  const print = printer(protocol, { words: loadWords(), secret });
  return {
    ...printing(transport, print),
    makeRoom: transport.makeRoom,
    sendAsync(data) {
      print('>', data);
      return transport.sendAsync(data);
    },
    receiveWaiting() {
      const received = transport.receiveWaiting();
      if (received instanceof Uint8Array) print('<', received);
      return received;
    },
    onReadable: transport.onReadable,
    attachFilter: transport.attachFilter,
    joinGroup: transport.joinGroup,
    leaveGroup: transport.leaveGroup,
  };
}

/** How messages are printed. */
export interface PrintOptions {
  /** Says what messages are about. @default none: types are numbers */
  readonly words?: MessageDescriber | undefined;
  /** Messages hold keys: their lengths are printed instead of their bytes. @default false */
  readonly secret?: boolean | undefined;
  /** Gets one line at a time. @default stderr, because stdout belongs to the CNI result */
  readonly write?: ((line: string) => void) | undefined;
}

/** Prints the messages of a datagram, sent (`>`) or received. */
type Print = (direction: '>' | '<', datagram: Uint8Array) => void;

/** The transport, each of whose datagrams is printed as it goes by. */
export function printing(transport: NetlinkTransport, print: Print): NetlinkTransport {
  return {
    portId: transport.portId,
    send(data) {
      print('>', data);
      transport.send(data);
    },
    receive() {
      const datagram = transport.receive();
      print('<', datagram);
      return datagram;
    },
    close: () => transport.close(),
  };
}

/** Prints messages of a netlink protocol; a malformed datagram whole. */
export function printer(protocol: number, options: PrintOptions = {}): Print {
  const { words, secret = false, write = (line) => void process.stderr.write(line) } = options;
  const shown = (bytes: Uint8Array) => (secret ? `(${bytes.length} bytes)` : Buffer.from(bytes).toString('hex'));
  return (direction, datagram) => {
    try {
      for (const message of readMessages(datagram)) {
        const { type, flags, sequence, payload } = message;
        const said = words?.describe(protocol, direction === '>', message);
        const name = said?.name ?? messageName(type);
        write(`netlink ${direction} ${name} flags 0x${flags.toString(16)} seq ${sequence} ${shown(payload)}\n`);
        for (const line of said?.lines ?? []) write(`netlink = ${line}\n`);
      }
    } catch (error) {
      write(`netlink ${direction} malformed (${String(error)}) ${shown(datagram)}\n`);
    }
  };
}

let loaded: MessageDescriber | undefined;

/** The same for all transports of a process; undefined where the file is not there: in a program that runs from its source. */
function loadWords(): MessageDescriber | undefined {
  if (loaded) return loaded;
  try {
    const require = createRequire(import.meta.url);
    const { NetlinkWords } = require(WORDS_FILE) as { readonly NetlinkWords: new () => MessageDescriber };
    loaded = new NetlinkWords();
  } catch {
    // Numbers are better than nothing.
  }
  return loaded;
}

function messageName(type: number): string {
  if (type === NLMSG_ERROR) return 'NLMSG_ERROR';
  if (type === NLMSG_DONE) return 'NLMSG_DONE';
  return `type ${type}`;
}
