import { afterEach, beforeEach, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { type ApiClient, type ApiRequest, ApiStatusError } from '../../kube/index.ts';
import type { Logger } from '../logger.ts';
import { ClusterVersion } from './cluster-version.ts';

const MINUTE = 60_000;
const logger = { info: () => {}, debug: () => {} } as unknown as Logger;
let clock: FakeClock;
let answer: () => string;
let asked: number;
let told: string[];
let version: ClusterVersion;

/** An API server that has nothing but /version. */
const client: ApiClient = {
  server: new URL('https://api.example:6443'),
  async send({ path }: ApiRequest) {
    expect(path).toBe('/version');
    asked++;
    const text = answer();
    // In two pieces, as the network may have it.
    const bytes = [text.slice(0, 9), text.slice(9)].map((part) => Buffer.from(part));
    return {
      status: 200,
      body: (async function* () {
        yield* bytes;
      })(),
      setQuietLimit: () => {},
    };
  },
  close: () => {},
};
const says = (gitVersion: unknown) => () => JSON.stringify({ major: '1', minor: '0+', gitVersion });

beforeEach(() => {
  clock = new FakeClock();
  asked = 0;
  told = [];
  version = new ClusterVersion({ client, clock, logger, random: () => 0, changed: (now) => told.push(now) });
});
afterEach(() => version.stop());

it.each([
  ['v1.34.2', 'v1.34.2'],
  ['v1.38.0-alpha.1.23+0123456789abcd', 'v1.38.0'],
  ['v1.30.4+k3s1', 'v1.30.4'],
  ['v1.33.5-gke.1080000', 'v1.33.5'],
])('of %s it takes %s', async (gitVersion, release) => {
  answer = says(gitVersion);
  version.start();
  await clock.advance(0);
  expect(told).toEqual([release]);
});

it.each([
  ['a page of a proxy', () => '<html>Sign in</html>'],
  ['no version', says(undefined)],
  ['a version that is none', says('1.34"} 1\nfake_metric')],
  ['a number', says(134)],
  ['nothing', () => ''],
  ['null', () => 'null'],
  ['a megabyte', () => JSON.stringify({ gitVersion: `v1.34.2${'x'.repeat(1 << 20)}` })],
  [
    'a refusal',
    () => {
      throw new ApiStatusError('Cannot read', 403, 'Forbidden');
    },
  ],
])('tells nothing when the answer is %s, and asks again', async (_, strange) => {
  answer = strange;
  version.start();
  await clock.advance(0);
  expect([asked, told]).toEqual([1, []]);
  answer = says('v1.34.2');
  await clock.advance(5 * MINUTE);
  expect([asked, told]).toEqual([2, ['v1.34.2']]);
});

it('tells an upgrade within five minutes, once', async () => {
  answer = says('v1.34.2');
  version.start();
  await clock.advance(12 * MINUTE);
  expect(told).toEqual(['v1.34.2']);
  answer = says('v1.35.0');
  await clock.advance(5 * MINUTE);
  expect(told).toEqual(['v1.34.2', 'v1.35.0']);
  expect(asked).toBe(4);
});

it('asks as soon as a server that was away is heard again, and no oftener', async () => {
  answer = says('v1.34.2');
  version.start();
  await clock.advance(0);
  version.observe({ kind: 'watchStarted', resource: 'services' });
  await clock.advance(0);
  expect(asked).toBe(1);
  answer = says('v1.35.0');
  for (const resource of ['services', 'nodes']) {
    version.observe({ kind: 'failed', resource, error: new Error('gone'), retryInMs: 1, relist: false });
  }
  for (const resource of ['services', 'nodes']) version.observe({ kind: 'watchStarted', resource });
  await clock.advance(0);
  expect([asked, told]).toEqual([2, ['v1.34.2', 'v1.35.0']]);
  await clock.advance(5 * MINUTE);
  expect(asked).toBe(3);
});

it('asks no more when it is stopped', async () => {
  answer = says('v1.34.2');
  version.start();
  await clock.advance(0);
  version.stop();
  version.observe({ kind: 'failed', resource: 'nodes', error: new Error('gone'), retryInMs: 1, relist: false });
  version.observe({ kind: 'watchStarted', resource: 'nodes' });
  await clock.advance(20 * MINUTE);
  expect(asked).toBe(1);
});
