import { expect, it } from 'vitest';
import { ENDPOINT_SLICES } from '../../resources.ts';
import type { ApiClient } from '../client/api-client.ts';
import { listPages } from './list-pages.ts';
import { targetsOf } from './target.ts';

it('gives up on an answer without end', async () => {
  let sent = 0;
  async function* endless() {
    for (;;) {
      sent += 1024;
      yield new Uint8Array(1024);
    }
  }
  const client: ApiClient = {
    server: new URL('https://192.0.2.1:6443'),
    send: async () => ({ status: 200, body: endless(), setQuietLimit() {} }),
    close() {},
  };
  const pages = listPages(client, targetsOf(ENDPOINT_SLICES)[0], new AbortController().signal, () => {}, 10_000);
  await expect(pages.next()).rejects.toMatchObject({
    code: 'ERR_API',
    message: expect.stringContaining('an answer is longer than 10000 bytes'),
  });
  expect(sent).toBeLessThan(20_000);
});
