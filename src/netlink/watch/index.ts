export { type Instruction, type MessageRule, messageFilter, program, withoutPorts } from './message-filter.ts';
export { type SocketWatch, watchSocket } from './watch-socket.ts';
