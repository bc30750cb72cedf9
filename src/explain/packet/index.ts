export { KnownBytes } from './known-bytes.ts';
export {
  type Connection,
  type Ends,
  type FirstPacket,
  type Interface,
  Packet,
  PROTOCOLS,
  type TooBig,
} from './packet.ts';
