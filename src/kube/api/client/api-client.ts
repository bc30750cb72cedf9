import { type ErrorFacts, NodeplaneError } from '../../../core/index.ts';

/** What is asked of the API server. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** From the root of the server: `/api/v1/services`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** The media type of `body`; of a PATCH it says which kind of patch it is. @default application/json */
  readonly bodyType?: string;
  /** Whether an answer in protobuf can be read, too; its `contentType` tells. @default false: it is asked for in JSON */
  readonly readsProtobuf?: boolean;
  /** How long all of it may take, to the last byte of the answer. @default 5 min: a server gives up much sooner */
  readonly limitMs?: number;
  readonly signal: AbortSignal;
}

/** An answer that is no refusal. */
export interface ApiResponse {
  /** 2xx; every other status is an ApiStatusError. */
  readonly status: number;
  /** The server's clock as its answer tells it (header Date), to a second. */
  readonly date?: string | undefined;
  /** The header of this name. */
  readonly contentType?: string | undefined;
  /** The bytes as they come. Leaving the loop early closes the connection. Throws ERR_API when it breaks. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Cuts the connection once no byte has come for this long. @default as for the answer itself: 60 s */
  setQuietLimit(ms: number): void;
}

/** An authenticated way to the API server. */
export interface ApiClient {
  /** Where it is at the moment. */
  readonly server: URL;
  /** Throws ApiStatusError when the server refuses, ERR_API when it cannot be reached or stays silent. */
  send(request: ApiRequest): Promise<ApiResponse>;
  /** Closes idle connections; requests under way go on until their signal aborts. */
  close(): void;
}

/** What a refusal says besides its status. */
export interface RefusalDetails {
  /** How long the server asks to wait, from Retry-After. */
  readonly retryAfterMs?: number | undefined;
  /** The reason of the `Status` object, CamelCase: `AlreadyExists`. @default none */
  readonly reason?: string | undefined;
  /** Facts besides status and retryAfterMs. @default none */
  readonly facts?: ErrorFacts;
}

/** A refusal of the API server: the `Status` object it answered with, or just the HTTP status. */
export class ApiStatusError extends NodeplaneError {
  readonly status: number;
  /** How long the server asks to wait, from Retry-After. */
  readonly retryAfterMs: number | undefined;
  // Read by getters: what is an own property of an error is printed in logs, where the message says it already.
  readonly #attempt: string;
  readonly #text: string;
  readonly #reason: string | undefined;

  /**
   * @param attempt what was tried, the start of the message
   * @param text the server's own words, possibly empty
   */
  constructor(attempt: string, status: number, text: string, details: RefusalDetails = {}) {
    const { retryAfterMs, reason, facts } = details;
    super('ERR_API', `${attempt}: the API server answered ${status}${text === '' ? '' : `: ${text}`}`, {
      facts: { status, retryAfterMs, ...facts },
    });
    this.name = 'ApiStatusError';
    this.status = status;
    this.retryAfterMs = retryAfterMs;
    this.#attempt = attempt;
    this.#text = text;
    this.#reason = reason;
  }

  /** What was tried. */
  get attempt(): string {
    return this.#attempt;
  }

  /** The server's own words. */
  get text(): string {
    return this.#text;
  }

  /** The reason of the `Status` object; undefined when there was none. */
  get reason(): string | undefined {
    return this.#reason;
  }
}

/** Whether the server answered with this HTTP status, or sent it as an ERROR event. */
export function isStatus(error: unknown, ...statuses: readonly number[]): boolean {
  return error instanceof ApiStatusError && statuses.includes(error.status);
}
