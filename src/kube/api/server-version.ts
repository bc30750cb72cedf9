import { NodeplaneError, parseJson } from '../../core/index.ts';
import type { ApiClient } from './client/api-client.ts';
import { wholeBody } from './client/whole-body.ts';

/** `/version` has some 300 bytes. */
const MOST_BYTES = 64 << 10;

/**
 * Asks the API server which release of Kubernetes it is. Everybody who is authenticated may (ClusterRole
 * system:public-info-viewer).
 *
 * @returns `v1.34.2`, without what distributors write behind it (`+k3s1`, `-gke.100`)
 * @throws ApiStatusError when the server refuses, ERR_API when it cannot be reached, or answers something else
 */
export async function readServerVersion(client: ApiClient, signal: AbortSignal): Promise<string> {
  const { body } = await client.send({ method: 'GET', path: '/version', signal });
  const bytes = await wholeBody(body, MOST_BYTES, () => strange(client, `more than ${MOST_BYTES} bytes`));
  const text = bytes.toString('utf8');
  const version = releaseOf(text);
  if (version === undefined) throw strange(client, JSON.stringify(text.slice(0, 100)));
  return version;
}

function releaseOf(text: string): string | undefined {
  try {
    const { gitVersion } = parseJson(text) as { gitVersion?: unknown };
    return typeof gitVersion === 'string' ? /^v\d{1,4}\.\d{1,4}(\.\d{1,9})?/.exec(gitVersion)?.[0] : undefined;
  } catch {
    return undefined;
  }
}

function strange(client: ApiClient, what: string): NodeplaneError {
  const { href } = new URL('/version', client.server);
  return new NodeplaneError('ERR_API', `Cannot tell the version of the API server: ${href} answered ${what}`);
}
