export { KnownBytes } from './known-bytes.ts';
export {
  type Connection,
  type Ends,
  type FirstPacket,
  GIVEN_PORTS,
  type Interface,
  type NeighbourMessage,
  Packet,
  PROTOCOLS,
  TCP_HANDSHAKE,
  type TooBig,
} from './packet.ts';
