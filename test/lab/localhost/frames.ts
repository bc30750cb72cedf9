import { IP_PROTOCOLS, KernelError, parseIp } from '../../../src/core/index.ts';
import { inNetns, libc } from '../../../src/sys/index.ts';
import type { TestNamespace } from '../namespace.ts';

// Frames that no kernel would send: from and to any address, written by hand onto a link.

const AF_PACKET = 17;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const ETH_P_ALL = 0x0003;
const ETH_P_IP = 0x0800;
const ETH_P_IPV6 = 0x86dd;
const MSG_DONTWAIT = 0x40;
const SYN = 0x02;

/** The beginning of a TCP connection. */
export interface Syn {
  readonly from: string;
  readonly to: string;
  readonly fromPort: number;
  readonly port: number;
}

/** A socket on one link of a namespace. */
export interface FrameSocket {
  /** Sends a SYN to the MAC address given, whatever it is about. */
  sendSyn(mac: string, syn: Syn): void;
  /** How many TCP segments to this port have come since the last call. */
  segmentsTo(port: number): number;
  close(): void;
}

/** Opens a socket on the link `name`. */
export function openFrameSocket(namespace: TestNamespace, name: string): FrameSocket {
  const shown = namespace.run('cat', `/sys/class/net/${name}/address`, `/sys/class/net/${name}/ifindex`);
  const [ownMac, index] = shown.trim().split('\n');
  const fd = inNetns(namespace.path, () => {
    const socket = libc().socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    // struct sockaddr_ll { u16 family; be16 protocol; int ifindex; ... }
    const address = Buffer.alloc(20);
    address.writeUInt16LE(AF_PACKET, 0);
    address.writeUInt16BE(ETH_P_ALL, 2);
    address.writeInt32LE(Number(index), 4);
    libc().bind(socket, address);
    return socket;
  });
  return {
    sendSyn: (mac, syn) => void libc().send(fd, Buffer.concat([macBytes(mac), macBytes(ownMac!), packetOf(syn)]), 0),
    segmentsTo(port) {
      const frame = Buffer.alloc(2048);
      for (let count = 0; ; ) {
        try {
          const length = libc().recv(fd, frame, MSG_DONTWAIT);
          if (destinationPort(frame.subarray(0, length)) === port) count++;
        } catch (error) {
          if (error instanceof KernelError && error.errnoName === 'EAGAIN') return count;
          throw error;
        }
      }
    },
    close: () => libc().close(fd),
  };
}

function destinationPort(frame: Buffer): number | undefined {
  const isIpv6 = frame.readUInt16BE(12) === ETH_P_IPV6;
  const protocol = frame[isIpv6 ? 20 : 23];
  return protocol === IP_PROTOCOLS.TCP ? frame.readUInt16BE(isIpv6 ? 56 : 36) : undefined;
}

/** EtherType and everything behind it. */
function packetOf({ from, to, fromPort, port }: Syn): Buffer {
  const [source, destination] = [parseIp(from), parseIp(to)];
  const addresses = Buffer.concat([source.bytes, destination.bytes]);
  const tcp = Buffer.alloc(20);
  tcp.writeUInt16BE(fromPort, 0);
  tcp.writeUInt16BE(port, 2);
  tcp.writeUInt32BE(1, 4);
  tcp[12] = 5 << 4;
  tcp[13] = SYN;
  tcp.writeUInt16BE(0xffff, 14);
  const pseudoHeader = Buffer.alloc(4);
  pseudoHeader[1] = IP_PROTOCOLS.TCP;
  pseudoHeader.writeUInt16BE(tcp.length, 2);
  tcp.writeUInt16BE(checksum(Buffer.concat([addresses, pseudoHeader, tcp])), 16);
  const header = Buffer.alloc(source.family === 'IPv4' ? 12 : 8);
  const type = Buffer.alloc(2);
  if (source.family === 'IPv4') {
    type.writeUInt16BE(ETH_P_IP);
    header[0] = 0x45;
    header.writeUInt16BE(40, 2);
    header[8] = 64;
    header[9] = IP_PROTOCOLS.TCP;
    header.writeUInt16BE(checksum(Buffer.concat([header, addresses])), 10);
  } else {
    type.writeUInt16BE(ETH_P_IPV6);
    header[0] = 0x60;
    header.writeUInt16BE(tcp.length, 4);
    header[6] = IP_PROTOCOLS.TCP;
    header[7] = 64;
  }
  return Buffer.concat([type, header, addresses, tcp]);
}

/** The Internet checksum (RFC 1071). */
function checksum(data: Buffer): number {
  let sum = 0;
  for (let at = 0; at < data.length; at += 2) sum += data.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

function macBytes(mac: string): Buffer {
  return Buffer.from(mac.trim().replaceAll(':', ''), 'hex');
}
