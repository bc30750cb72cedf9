import type { BatchTransport } from '../transport.ts';

/** Datagrams read before others of the event loop get their turn. */
const DATAGRAMS_AT_ONCE = 64;

/** A watch over a socket. */
export interface SocketWatch {
  /** Hands over now all that waits. */
  catchUp(): void;
  /** Closes the socket too. */
  close(): void;
}

/**
 * Hands over what comes in at a socket of multicast groups, from now on until `close`, which closes the socket too. While
 * nothing comes nothing runs, and reading never holds up the event loop.
 *
 * @param listener gets a datagram of its own to keep, or 'lost' when messages came faster than they were read, or could not be read
 */
export function watchSocket(socket: BatchTransport, listener: (datagram: Uint8Array | 'lost') => void): SocketWatch {
  let open = true;
  const read = (atMost: number) => {
    for (let i = 0; open && i < atMost; i++) {
      const datagram = nextDatagram(socket);
      if (!datagram) return;
      listener(datagram);
    }
  };
  const stop = socket.onReadable(() => read(DATAGRAMS_AT_ONCE));
  return {
    catchUp: () => read(Number.POSITIVE_INFINITY),
    close() {
      if (!open) return;
      open = false;
      stop();
      socket.close();
    },
  };
}

/** Undefined when nothing waits. */
function nextDatagram(socket: BatchTransport): Uint8Array | 'lost' | undefined {
  try {
    const received = socket.receiveWaiting();
    return received instanceof Uint8Array ? Uint8Array.from(received) : received && 'lost';
  } catch {
    return 'lost';
  }
}
