export { cleanup } from './cleanup.ts';
export { type AgentWork, initialise, runAgent } from './run.ts';
