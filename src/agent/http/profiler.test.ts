import { afterAll, beforeAll, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { HttpAnswer } from './http-listener.ts';
import { Profiler } from './profiler.ts';

const clock = new FakeClock();
const profiler = new Profiler(clock);
beforeAll(() => profiler.start());
afterAll(() => profiler.stop());

function get(url: string, remoteAddress: string | undefined = '127.0.0.1'): HttpAnswer | Promise<HttpAnswer> {
  const { pathname, searchParams } = new URL(url, 'http://localhost');
  const request = { method: 'GET', path: pathname, query: searchParams, headers: {}, remoteAddress };
  return profiler.pages[pathname]!(request);
}

it('gives a profile of the processor after the time that was asked for, one at a time', async () => {
  const answer = get('/debug/pprof/profile?seconds=5');
  // Until the timer is set.
  await new Promise((resolve) => setImmediate(resolve));
  expect(await get('/debug/pprof/profile?seconds=1')).toMatchObject({ status: 409 });
  await clock.advance(5000);
  const { status, headers, body } = await answer;
  expect({ status, name: headers['Content-Disposition'] }).toEqual({
    status: 200,
    name: 'attachment; filename="nodeplane.cpuprofile"',
  });
  expect(JSON.parse(body)).toMatchObject({ nodes: expect.any(Array), samples: expect.any(Array) });
});

it('gives a profile of the heap, without what is in it', async () => {
  const secret = { token: 'what-nobody-is-to-see'.repeat(50_000) };
  const { status, body } = await get('/debug/pprof/heap');
  expect(status).toBe(200);
  expect(JSON.parse(body)).toMatchObject({ head: { children: expect.any(Array) } });
  expect(body).not.toContain(secret.token.slice(0, 21));
});

it.each([['0'], ['-1'], ['61'], ['x'], ['NaN'], ['1e9']])('takes none of %s seconds', async (seconds) => {
  expect(await get(`/debug/pprof/profile?seconds=${seconds}`)).toMatchObject({ status: 400 });
});

it.each<[string | undefined, number]>([
  ['127.0.0.1', 200],
  ['127.8.9.1', 200],
  ['::1', 200],
  ['::ffff:127.0.0.1', 200],
  ['192.168.50.1', 403],
  ['::ffff:192.168.50.1', 403],
  ['::127.0.0.1', 403],
  ['fd00::1', 403],
])('a client at %s gets %d', async (address, status) => {
  for (const path of ['/debug/pprof/', '/debug/pprof/heap']) expect(await get(path, address)).toMatchObject({ status });
});

it('a client whose address is gone gets nothing', async () => {
  const request = { method: 'GET', path: '', query: new URLSearchParams(), headers: {} };
  expect(await profiler.pages['/debug/pprof/']!(request)).toMatchObject({ status: 403 });
});
