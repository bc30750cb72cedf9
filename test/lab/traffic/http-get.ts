import { get } from 'node:http';
import { patient } from '../patience.ts';
import type { HttpResponse } from './protocol.ts';

/** Fetches a URL over a connection of its own. Rejects when there is no complete response within the time limit. */
export function httpGet(url: string, timeoutMs: number): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false, signal: AbortSignal.timeout(patient(timeoutMs)) }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      response.on('error', reject);
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      reject(new Error(`GET ${url} failed: ${error.code ?? error.message}`));
    });
  });
}
