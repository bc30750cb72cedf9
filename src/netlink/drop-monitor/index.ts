export { configure, type DropConfiguration, decodeConfiguration, dropRequest } from './configuration.ts';
export type { DroppedPacket } from './dropped-packet.ts';
export { watchDrops } from './watch-drops.ts';
