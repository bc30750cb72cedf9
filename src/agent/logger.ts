import { type Logger, type LoggerOptions, pino } from 'pino';

export type { Logger };

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * The agent's log: one JSON object a line on stderr, written synchronously so that the last line before a crash is there.
 * Errors appear under `err` with code, facts and cause.
 */
export function createLogger(level: LogLevel): Logger {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  };
  return pino(options, pino.destination({ dest: 2, sync: true }));
}
