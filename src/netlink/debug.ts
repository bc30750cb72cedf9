import { readMessages } from './message.ts';
import type { BatchTransport, NetlinkTransport } from './transport.ts';
import { NETLINK_ROUTE, NLMSG_DONE, NLMSG_ERROR } from './uapi/netlink.ts';
import * as rtnetlink from './uapi/rtnetlink.ts';

const ROUTE_NAMES = new Map<number, string>(
  Object.entries(rtnetlink).flatMap(([name, value]) =>
    /^RTM_(NEW|DEL|GET|SET)/.test(name) && typeof value === 'number' ? [[value, name] as const] : [],
  ),
);

/**
 * Wraps a transport so that every message is printed as it goes by, one line each: direction, name, flags, sequence
 * number, and the whole payload as hex. Switched on by NODEPLANE_NETLINK_DEBUG=1.
 *
 * @param write gets one line at a time; stderr by default, because stdout belongs to the CNI result
 */
export function debugTransport(
  transport: NetlinkTransport,
  protocol: number,
  write: (line: string) => void = (line) => void process.stderr.write(line),
): NetlinkTransport {
  const print = (direction: string, datagram: Uint8Array) => {
    try {
      for (const { type, flags, sequence, payload } of readMessages(datagram)) {
        const hex = Buffer.from(payload).toString('hex');
        write(
          `netlink ${direction} ${messageName(protocol, type)} flags 0x${flags.toString(16)} seq ${sequence} ${hex}\n`,
        );
      }
    } catch (error) {
      write(`netlink ${direction} malformed (${String(error)}) ${Buffer.from(datagram).toString('hex')}\n`);
    }
  };
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

/** As `debugTransport`, for a transport of batches. */
export function debugBatchTransport(transport: BatchTransport, protocol: number): BatchTransport {
  const printing = debugTransport(transport, protocol);
  // What is sent or received another way is passed by the same printer.
  const print = (received: Uint8Array) => debugTransport({ ...transport, receive: () => received }, protocol).receive();
  return {
    ...printing,
    makeRoom: transport.makeRoom,
    sendAsync(data) {
      debugTransport({ ...transport, send: () => {} }, protocol).send(data);
      return transport.sendAsync(data);
    },
    receiveWaiting() {
      const received = transport.receiveWaiting();
      return received instanceof Uint8Array ? print(received) : received;
    },
    onReadable: transport.onReadable,
  };
}

function messageName(protocol: number, type: number): string {
  if (type === NLMSG_ERROR) return 'NLMSG_ERROR';
  if (type === NLMSG_DONE) return 'NLMSG_DONE';
  return (protocol === NETLINK_ROUTE ? ROUTE_NAMES.get(type) : undefined) ?? `type ${type}`;
}
