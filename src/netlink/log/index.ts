export { decodeLog, type LoggedPacket, watchLog } from './watch-log.ts';
