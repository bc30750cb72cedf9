export type {
  DataplaneHooks,
  Machine,
  Mode,
  ModeLogger,
  PreparedMode,
  ProxyMode,
  Trace,
  TraceOptions,
  type PortTraffic,
} from './mode.ts';
export * from './observe/index.ts';
export * from './plan/index.ts';
export * from './sync/index.ts';
