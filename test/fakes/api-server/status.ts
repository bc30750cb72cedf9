import { STATUS_CODES } from 'node:http';

const REASONS: Readonly<Record<number, string>> = {
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Expired',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
};

/**
 * The `Status` object with which the API says no.
 *
 * @param reason @default the usual one for the code
 */
export function statusObject(code: number, message: string, reason?: string): object {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason: reason ?? REASONS[code] ?? STATUS_CODES[code]?.replaceAll(' ', ''),
    code,
  };
}

/** Why a request is refused; thrown by what answers it. */
export class Refusal extends Error {
  readonly code: number;
  readonly reason: string | undefined;

  /** @param reason @default the usual one for the code */
  constructor(code: number, message: string, reason?: string) {
    super(message);
    this.code = code;
    this.reason = reason;
  }
}
