import { type Logger, type LoggerOptions, pino } from 'pino';
import type { KubeProxyConfig } from '../config/index.ts';

export type { Logger };

/**
 * The agent's log: one JSON object a line on stderr, written synchronously so that the last line before a crash is there.
 * Errors appear under `err` with code, facts and cause.
 */
export function createLogger(level: KubeProxyConfig['logging']['level']): Logger {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  };
  return pino(options, pino.destination({ dest: 2, sync: true }));
}
