import { ipFromBytes, readBe16 } from '../../core/index.ts';
import type { FlowDirection } from '../../netlink/conntrack/index.ts';

const TCP = 6;
const TCP_FLAGS = 13;
const IPV6_HEADER = 40;
const FLAGS = [
  [0x02, 'SYN'],
  [0x10, 'ACK'],
  [0x01, 'FIN'],
  [0x04, 'RST'],
] as const;

/** What the headers of a traced packet say. */
export interface TracedPacket extends FlowDirection {
  /** IPPROTO_*; of IPv6 the first next header. */
  readonly protocol: number;
  /** `SYN`, `SYN-ACK`, `RST`, …; empty for other protocols. */
  readonly flags: string;
}

/** Reads the headers as the kernel copied them; undefined when they are cut off before the ports. Pure. */
export function readPacket(network: Uint8Array, transport: Uint8Array | undefined): TracedPacket | undefined {
  const version = (network[0] ?? 0) >> 4;
  const [source, destination, end, protocolAt] = version === 6 ? [8, 24, 40, 6] : [12, 16, 20, 9];
  if (!transport || transport.length < 4 || network.length < end) return undefined;
  const protocol = network[protocolAt]!;
  const bits = protocol === TCP ? (transport[TCP_FLAGS] ?? 0) : 0;
  const flags = FLAGS.filter(([bit]) => (bits & bit) !== 0).map(([, name]) => name);
  return {
    source: ipFromBytes(network.slice(source, destination)),
    destination: ipFromBytes(network.slice(destination, end)),
    sourcePort: readBe16(transport, 0),
    destinationPort: readBe16(transport, 2),
    protocol,
    // A bare ACK carries data or ends a handshake.
    flags: flags.join('-'),
  };
}

/** As `readPacket`, of a packet from its IP header on. Pure. */
export function readIpPacket(bytes: Uint8Array): TracedPacket | undefined {
  const first = bytes[0] ?? 0;
  const length = first >> 4 === 6 ? IPV6_HEADER : (first & 0x0f) * 4;
  return readPacket(bytes.subarray(0, length), bytes.subarray(length));
}
