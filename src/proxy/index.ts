export type {
  DataplaneHooks,
  Machine,
  Mode,
  ModeLogger,
  PortTraffic,
  PreparedMode,
  ProxyMode,
  Trace,
  TraceOptions,
} from './mode.ts';
export * from './observe/index.ts';
export * from './plan/index.ts';
export * from './sync/index.ts';
