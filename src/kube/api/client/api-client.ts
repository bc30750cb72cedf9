import { NodeplaneError } from '../../../core/index.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST';
  /** From the root of the server: `/api/v1/services`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly signal: AbortSignal;
}

export interface ApiResponse {
  /** 2xx; every other status is an ApiStatusError. */
  readonly status: number;
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

/** A refusal of the API server: the `Status` object it answered with, or just the HTTP status. */
export class ApiStatusError extends NodeplaneError {
  readonly status: number;
  /** How long the server asks to wait, from Retry-After. */
  readonly retryAfterMs: number | undefined;

  constructor(attempt: string, status: number, text: string, retryAfterMs?: number) {
    super('ERR_API', `${attempt}: the API server answered ${status}${text === '' ? '' : `: ${text}`}`, {
      facts: { status, retryAfterMs },
    });
    this.name = 'ApiStatusError';
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Whether the server answered with this HTTP status, or sent it as an ERROR event. */
export function isStatus(error: unknown, ...statuses: readonly number[]): boolean {
  return error instanceof ApiStatusError && statuses.includes(error.status);
}
