export { KnownBytes } from './known-bytes.ts';
export {
  type Connection,
  ENOUGH_HOPS,
  type Ends,
  type FirstPacket,
  GIVEN_PORTS,
  HEADER_FIELDS,
  type Interface,
  type NeighbourMessage,
  Packet,
  PROTOCOLS,
  TCP_HANDSHAKE,
  type TooBig,
} from './packet.ts';
