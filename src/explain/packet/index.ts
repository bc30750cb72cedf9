export { KnownBytes } from './known-bytes.ts';
export {
  type Connection,
  type Ends,
  type FirstPacket,
  type Interface,
  Packet,
  PROTOCOLS,
  TCP_HANDSHAKE,
  type TooBig,
} from './packet.ts';
