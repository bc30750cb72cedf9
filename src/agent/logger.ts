import { type Logger, type LoggerOptions, pino } from 'pino';
import type { KubeProxyConfig } from '../config/index.ts';
import { type Clock, errorText, Pace } from '../core/index.ts';
import { textLine } from './log-line.ts';

export type { Logger };

/** Characters of the log that are kept while they cannot be written. */
const MOST_KEPT = 1 << 20;

/**
 * The agent's log, on stderr, written synchronously so that the last line before a crash is there: lines for people, or one
 * JSON object a line. Errors appear under `err` with code, facts and cause.
 */
export function createLogger({ level, format }: Pick<KubeProxyConfig['logging'], 'level' | 'format'>): Logger {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: loggedError },
  };
  const stderr = pino.destination({ dest: 2, sync: true, maxLength: MOST_KEPT });
  // A full disk under the log must not end the agent: the lines are kept, and written once there is room.
  stderr.on('error', () => {});
  if (format === 'json') return pino(options, stderr);
  const withStacks = level === 'debug';
  return pino(options, { write: (json: string) => void stderr.write(textLine(json, withStacks)) });
}

/** Tells of a trouble once while it lasts, however often it is met: an attempt every few seconds would fill the log with it. */
export class LastingTrouble {
  readonly #logger: Logger;
  #told = '';

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /**
   * At error level; at debug level when the last one was for the same reason, and is not over.
   *
   * @param fields of the line, besides the error
   */
  tell(error: unknown, message: string, fields: object = {}): void {
    const reason = errorText(error);
    this.#logger[reason === this.#told ? 'debug' : 'error']({ ...fields, err: error }, message);
    this.#told = reason;
  }

  /** The next one is told, whatever it is. */
  over(): void {
    this.#told = '';
  }
}

/** Two programs that undo each other's work do so every second. */
const REPEATED = { atOnce: 3, eachMs: 60_000 };

/** Tells of what happens again and again: a few times at once, and once a minute then, with how many times it happened meanwhile. */
export class RepeatedNews {
  readonly #logger: Logger;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #pace = new Pace(REPEATED);
  #untold = 0;

  constructor(logger: Logger, clock: Pick<Clock, 'now'>) {
    this.#logger = logger;
    this.#clock = clock;
  }

  /**
   * Of each time; those that are not told at `level` are at debug level.
   *
   * @param fields of the line, besides `times`
   * @returns whether it was told
   */
  tell(level: 'info' | 'warn', fields: object, message: string): boolean {
    const now = this.#clock.now();
    const isTold = this.#pace.leftMs(now) === 0;
    const times = this.#untold + 1;
    this.#untold = isTold ? 0 : times;
    if (isTold) this.#pace.passed(now);
    this.#logger[isTold ? level : 'debug']({ ...fields, ...(times > 1 && { times }) }, message);
    return isTold;
  }
}

/** As pino shows it, but for the message: with the words of each cause once. */
function loggedError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  return { ...pino.stdSerializers.err(error), message: errorText(error) };
}
