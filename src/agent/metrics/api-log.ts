import { type Clock, errorText } from '../../core/index.ts';
import { type ApiObservation, ApiStatusError } from '../../kube/index.ts';
import type { Logger } from '../logger.ts';

type Failed = Extract<ApiObservation, { kind: 'failed' }>;

/** Requests that wait for their turn are told so often, as client-go does: where one waits, many do. */
const WAITING_EVERY_MS = 10_000;

const ISO_TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z/;

/**
 * Writes the conversation with the API server into the log: what has been read, when the server is not heard any more, and when
 * it is again. A reason is told once, however many resources and attempts meet it; all else is at debug level.
 */
export class ApiLog {
  readonly #logger: Logger;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #began: number;
  /** By resource, how many objects its last list had. */
  readonly #read = new Map<string, number>();
  /** By resource that fails now, how often it did, and whether the server answered. */
  readonly #failing = new Map<string, { readonly times: number; readonly isAnswer: boolean }>();
  /** Reasons that were told, until all is well again. */
  readonly #told = new Set<string>();
  #awaySince: number | undefined;
  /** When it was last told that requests wait for their turn. */
  #toldOfWaiting = Number.NEGATIVE_INFINITY;

  constructor(logger: Logger, clock: Pick<Clock, 'now'>) {
    this.#logger = logger;
    this.#clock = clock;
    this.#began = clock.now();
  }

  /** What existed at the start is known, but for resources that could not be read at once. */
  complete(): void {
    if (this.#read.size === 0) return;
    const figures = { ...Object.fromEntries([...this.#read].sort()), seconds: this.#secondsSince(this.#began) };
    const missing = [...this.#failing.keys()].filter((resource) => !this.#read.has(resource));
    if (missing.length === 0) this.#logger.info(figures, 'All objects are read');
    else this.#logger.info({ ...figures, missing }, 'Objects are read, but not all of them yet');
  }

  readonly observe = (observation: ApiObservation): void => {
    const logger = this.#logger;
    switch (observation.kind) {
      case 'failed':
        this.#failed(observation);
        break;
      case 'listed': {
        const { kind: _, ...figures } = observation;
        this.#read.set(figures.resource, figures.objects);
        logger.debug(figures, 'Read from the API server');
        this.#heard(figures.resource);
        break;
      }
      case 'watchStands':
        logger.debug({ ...observation }, 'API server');
        this.#heard(observation.resource);
        break;
      case 'heldBack': {
        const { kind: _, ...request } = observation;
        const now = this.#clock.now();
        const isNews = now - this.#toldOfWaiting >= WAITING_EVERY_MS;
        if (isNews) this.#toldOfWaiting = now;
        logger[isNews ? 'info' : 'debug'](
          request,
          'A request to the API server waited for its turn (--kube-api-qps, --kube-api-burst)',
        );
        break;
      }
      case 'credentialPlugin': {
        const { state, command, seconds } = observation;
        if (state === 'running') {
          logger.warn({ command, seconds }, 'The credential plugin of the kubeconfig has not answered yet');
        } else logger.debug({ command, seconds, state }, 'The credential plugin of the kubeconfig has ended');
        break;
      }
      case 'eventDropped':
        logger.debug({ ...observation }, 'An Event was not recorded');
        break;
      default:
        logger.debug({ ...observation }, 'API server');
    }
  };

  #failed({ resource, error, retryInMs, relist }: Failed): void {
    const times = (this.#failing.get(resource)?.times ?? 0) + 1;
    const isAnswer = error instanceof ApiStatusError;
    this.#failing.set(resource, { times, isAnswer });
    // A watch that ends is begun anew, most often at once; only what lasts is worth a line.
    const isPassing = times === 1 && this.#read.has(resource);
    const reason = errorText(error)
      .replace(/^[A-Z]+ \S+/, '')
      .replace(/ \/apis?\/\S+/, '')
      // What the clock says beside a certificate that has expired is another reason each time.
      .replace(ISO_TIME, '')
      .replaceAll(resource, '');
    const isNews = !isPassing && !this.#told.has(reason);
    if (isNews) this.#told.add(reason);
    if (isNews && !isAnswer) this.#awaySince ??= this.#clock.now();
    this.#logger[isNews ? 'warn' : 'debug'](
      { resource, retryInMs, ...(!isNews && { relist }), err: error },
      'The API server cannot be read; what was written stays in force, and it is asked again and again: look whether this node reaches it',
    );
  }

  #heard(resource: string): void {
    if (!this.#failing.delete(resource)) return;
    const failing = [...this.#failing.values()];
    if (failing.length === 0) this.#told.clear();
    if (this.#awaySince === undefined || failing.some(({ isAnswer }) => !isAnswer)) return;
    const awaySeconds = Math.round(this.#secondsSince(this.#awaySince));
    this.#awaySince = undefined;
    this.#logger.info({ awaySeconds }, 'The API server is heard again');
  }

  #secondsSince(then: number): number {
    return (this.#clock.now() - then) / 1000;
  }
}
