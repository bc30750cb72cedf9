export { type LoggedPacket, watchLog } from './watch-log.ts';
