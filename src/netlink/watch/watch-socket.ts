import type { BatchTransport } from '../transport.ts';

/** Datagrams read before others of the event loop get their turn. */
const DATAGRAMS_AT_ONCE = 64;

/**
 * Hands over what comes in at a socket of multicast groups, from now on until `close`, which closes the socket too. While
 * nothing comes nothing runs, and reading never holds up the event loop.
 *
 * @param listener gets a datagram of its own to keep, or 'lost' when messages came faster than they were read, or could not be read
 */
export function watchSocket(
  socket: BatchTransport,
  listener: (datagram: Uint8Array | 'lost') => void,
): { close(): void } {
  let open = true;
  const stop = socket.onReadable(() => {
    for (let i = 0; open && i < DATAGRAMS_AT_ONCE; i++) {
      const datagram = nextDatagram(socket);
      if (!datagram) return;
      listener(datagram);
    }
  });
  return {
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
