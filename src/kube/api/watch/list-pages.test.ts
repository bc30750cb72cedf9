import { Readable } from 'node:stream';
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

it('gives up on pages that lead to themselves', async () => {
  let asked = 0;
  const list = { metadata: { resourceVersion: '1', continue: 'x' }, items: [] };
  const client: ApiClient = {
    server: new URL('https://192.0.2.1:6443'),
    async send() {
      asked++;
      return { status: 200, body: Readable.from([Buffer.from(JSON.stringify(list))]), setQuietLimit() {} };
    },
    close() {},
  };
  const pages = listPages(client, targetsOf(ENDPOINT_SLICES)[0], new AbortController().signal, () => {});
  const all = async () => {
    for await (const _ of pages);
  };
  await expect(all()).rejects.toThrow('a page names itself as the next one');
  expect(asked).toBe(2);
});
