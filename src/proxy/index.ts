export type { DataplaneHooks, Mode, ModeLogger, PreparedMode, Trace, TraceOptions } from './mode.ts';
export * from './observe/index.ts';
export * from './plan/index.ts';
export * from './sync/index.ts';
