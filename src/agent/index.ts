export { runAgent } from './agent.ts';
export { cleanup } from './cleanup.ts';
export { type AgentConfig, type AgentFlags, parseAgentConfig } from './config.ts';
