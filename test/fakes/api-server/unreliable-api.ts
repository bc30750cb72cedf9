import { type Clock, NodeplaneError } from '../../../src/core/index.ts';
import { type ApiClient, type ApiRequest, type ApiResponse, ApiStatusError } from '../../../src/kube/index.ts';
import { behaveWell } from './misbehaviour.ts';
import { ObjectHistory } from './object-history.ts';
import { ObjectRequests, type Outcome } from './object-requests.ts';
import { parseCall } from './request.ts';
import { Refusal, statusObject } from './status.ts';

/** What happens to one request on its way. */
export interface Journey {
  /** When the server gets it, in milliseconds from now, once for each copy; none: never. */
  readonly arrivals: readonly number[];
  /** How long the answer to the first copy that arrives is on its way; undefined: it is lost. */
  readonly answerMs: number | undefined;
}

/**
 * The API server's objects behind a network that delays, doubles, reorders and loses, all in the time of one clock and
 * without any sockets. For requests about single objects.
 */
export class UnreliableApi implements ApiClient {
  readonly server = new URL('https://unreliable.test');
  readonly history = new ObjectHistory();
  readonly #requests = new ObjectRequests(this.history);
  readonly #clock: Clock;
  readonly #journey: (request: ApiRequest) => Journey;

  /** @param journey asked for each request */
  constructor(clock: Clock, journey: (request: ApiRequest) => Journey) {
    this.#clock = clock;
    this.#journey = journey;
  }

  /** Settles with the answer, or when the signal aborts. */
  send(request: ApiRequest): Promise<ApiResponse> {
    const { arrivals, answerMs } = this.#journey(request);
    return new Promise((resolve, reject) => {
      const stop = () => reject(new NodeplaneError('ERR_API', `${request.method} ${request.path} failed: stopped`));
      if (request.signal.aborted) return stop();
      request.signal.addEventListener('abort', stop);
      let isFirst = true;
      for (const ms of arrivals) {
        this.#clock.setTimer(() => {
          const outcome = this.#answer(request);
          if (isFirst && answerMs !== undefined) {
            this.#clock.setTimer(() => settle(request, outcome, resolve, reject), answerMs);
          }
          isFirst = false;
        }, ms);
      }
    });
  }

  close(): void {}

  #answer({ method, path, query, body, bodyType = 'application/json' }: ApiRequest): Outcome {
    const call = parseCall(method, `${path}?${new URLSearchParams(query)}`, behaveWell());
    try {
      if (!call) throw new Refusal(404, 'the server could not find the requested resource');
      return this.#requests.answer(call, { type: bodyType, text: body === undefined ? '' : JSON.stringify(body) });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { code: error.code, body: statusObject(error.code, error.message, error.reason) };
    }
  }
}

function settle(
  { method, path }: ApiRequest,
  { code, body }: Outcome,
  resolve: (response: ApiResponse) => void,
  reject: (error: Error) => void,
): void {
  if (code > 299) {
    const { message, reason } = body as { readonly message: string; readonly reason: string };
    reject(new ApiStatusError(`${method} ${path}`, code, message, { reason }));
  } else resolve({ status: code, body: chunksOf(body), setQuietLimit: () => {} });
}

async function* chunksOf(body: object): AsyncGenerator<Uint8Array> {
  yield Buffer.from(JSON.stringify(body));
}
