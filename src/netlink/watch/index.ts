export { type MessageRule, messageFilter } from './message-filter.ts';
export { watchSocket } from './watch-socket.ts';
