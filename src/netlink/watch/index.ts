export { type MessageRule, messageFilter } from './message-filter.ts';
export { type SocketWatch, watchSocket } from './watch-socket.ts';
