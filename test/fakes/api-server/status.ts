import { STATUS_CODES } from 'node:http';

const REASONS: Readonly<Record<number, string>> = {
  410: 'Expired',
  422: 'Invalid',
  429: 'TooManyRequests',
};

/** The `Status` object with which the API says no. */
export function statusObject(code: number, message: string): object {
  const reason = REASONS[code] ?? STATUS_CODES[code]?.replaceAll(' ', '');
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code };
}
