import { setImmediate as turn } from 'node:timers/promises';
import type { ApiClient, ApiRequest, ApiResponse, EndpointSlice, Service } from '../../src/kube/index.ts';

/** As a socket hands it over. */
const CHUNK = 64 * 1024;

/** An API server without a server: what it sends comes in pieces as from a socket. */
export class WatchedApi implements ApiClient {
  readonly server = new URL('https://192.0.2.250:6443');
  readonly #watches = new Map<string, (line: Buffer) => void>();
  #version = 1;

  async send({ path, signal }: ApiRequest): Promise<ApiResponse> {
    const queue: Buffer[] = [Buffer.from(`${JSON.stringify(END_OF_LIST)}\n`)];
    let wake = () => {};
    this.#watches.set(path, (line) => {
      queue.push(line);
      wake();
    });
    signal.addEventListener('abort', () => wake());
    async function* body() {
      while (!signal.aborted) {
        const line = queue.shift();
        for (let at = 0; line && at < line.length; at += CHUNK) {
          yield line.subarray(at, at + CHUNK);
          await turn();
        }
        if (queue.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      }
    }
    return { status: 200, body: body(), setQuietLimit: () => {} };
  }

  close(): void {}

  /** The events as they go over the wire. */
  encode(
    type: 'ADDED' | 'MODIFIED' | 'DELETED',
    objects: readonly (Service | EndpointSlice)[],
  ): readonly (readonly [string, Buffer])[] {
    return objects.map((object) => {
      const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
      const line = `${JSON.stringify({ type, object: { ...object, metadata } })}\n`;
      return [PATHS[object.kind], Buffer.from(line)] as const;
    });
  }

  /** Sends what `encode` made. */
  tell(lines: readonly (readonly [string, Buffer])[]): void {
    for (const [path, line] of lines) this.#watches.get(path)!(line);
  }
}

const PATHS = { Service: '/api/v1/services', EndpointSlice: '/apis/discovery.k8s.io/v1/endpointslices' } as const;

const END_OF_LIST = {
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: '1', annotations: { 'k8s.io/initial-events-end': 'true' } } },
};
