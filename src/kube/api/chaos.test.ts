import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { apiNode, apiService, apiSlice, FakeApiServer, ObjectRecorder } from '../../../test/fakes/api-server/index.ts';
import { type Clock, systemClock } from '../../core/index.ts';
import { proxyResources } from '../../proxy/index.ts';
import type { EndpointSlice } from '../objects/types.ts';
import { ApiSource } from './api-source.ts';
import { createApiClient } from './client/http-client.ts';
import type { ApiObservation } from './client/observation.ts';

const STABLE = 700;
const ROUNDS = 60;

/** Time runs ten times as fast: the waits between attempts are not what is tested here. */
const fastClock: Clock = {
  ...systemClock,
  now: () => systemClock.now() * 10,
  setTimer: (fn, ms) => systemClock.setTimer(fn, ms / 10),
};

/** The same choices in every run. */
function choices(seed: number): (count: number) => number {
  let state = seed;
  return (count) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
}

it.each([
  ['streaming lists, protobuf', true, 'both'],
  ['paged lists, protobuf', false, 'both'],
  ['streaming lists, JSON', true, 'json'],
] as const)(
  'ends in the right state and never deletes what exists, whatever the server does (%s)',
  async (_, streaming, speaks) => {
    const folder = mkdtempSync(join(tmpdir(), 'nodeplane-chaos-'));
    const server = new FakeApiServer({ speaks });
    const { misbehave } = server;
    misbehave.streamingLists = streaming;
    await server.start();
    server.apply(apiNode('node-1'));
    for (let i = 0; i < STABLE; i++)
      server.apply(apiService(`demo/stable-${i}`), apiSlice(`demo/stable-${i}`, ['10.0.0.1']));
    server.writeKubeconfig(join(folder, 'kubeconfig'));

    const wronglyDeleted: string[] = [];
    const recorder = new ObjectRecorder(({ type, object }) => {
      // An object that was deleted never comes back under the same name, so the server cannot have it.
      const exists = () => server.objects(object.kind).some(({ metadata }) => metadata.name === object.metadata.name);
      if (type === 'deleted' && exists()) wronglyDeleted.push(object.metadata.name);
    });
    const counts = { lists: 0, failures: 0 };
    const observe = ({ kind }: ApiObservation) => {
      if (kind === 'listed') counts.lists++;
      if (kind === 'failed') counts.failures++;
    };
    const client = await createApiClient({
      kubeconfig: join(folder, 'kubeconfig'),
      userAgent: 'test',
      clock: fastClock,
    });
    const source = new ApiSource({ client, resources: proxyResources('node-1', ''), clock: fastClock, observe });
    await source.start(recorder);

    const choose = choices(streaming ? 1 : 2);
    const pick = <T>(list: readonly T[]) => list[choose(list.length)];
    const volatile: string[] = [];
    let made = 0;
    const change = () => {
      const stable = `demo/stable-${choose(STABLE)}`;
      server.apply(apiSlice(stable, [`10.0.${choose(250)}.${choose(250)}`]));
      if (choose(2) === 0) {
        const name = `demo/volatile-${made++}`;
        volatile.push(name);
        server.apply(apiService(name), apiSlice(name, []));
      } else {
        const name = volatile.splice(choose(volatile.length), 1)[0];
        if (name) server.delete('Service', name);
        if (name) server.delete('EndpointSlice', `${name}-a`);
      }
    };
    const disturbances: readonly (() => void | Promise<void>)[] = [
      () => pick(server.watches())?.reset(true),
      () => pick(server.watches())?.end(),
      () => pick(server.watches())?.garbage(),
      () => pick(server.watches())?.error({ code: 410, message: 'too old' }),
      () => void misbehave.answers.push({ status: 410 }, { status: 500 }, { status: 429, retryAfterSeconds: 1 }),
      () => void misbehave.answers.push({ status: 200, body: '<html>not an API server</html>' }),
      () => {
        server.compact();
        for (const watch of server.watches()) watch.reset();
      },
      () => {
        misbehave.refuseWatchVersions = pick(['header', 'event', undefined, undefined]);
      },
      () => {
        misbehave.expireContinueTokens = choose(2) === 0;
      },
      () => {
        misbehave.slow = choose(2) === 0 ? { bytes: 50_000, pauseMs: 3 } : undefined;
      },
      async () => {
        await server.stop();
        change();
        await server.start();
      },
    ];
    misbehave.cutWatchesAfterMs = 150;
    const hasDeleted = () => recorder.log().some((line) => line.startsWith('deleted'));
    const isBadEnough = () => counts.lists > 8 && counts.failures > 20 && hasDeleted();
    for (let round = 0; round < ROUNDS || !isBadEnough(); round++) {
      // A slow machine has met less by then: it is given more rounds, and the time to take the answers of each.
      if (round >= ROUNDS) {
        misbehave.answers.length = 0;
        await sleep(300);
      }
      for (let i = choose(8); i >= 0; i--) change();
      await pick(disturbances)?.();
      await sleep(choose(60));
    }

    Object.assign(misbehave, { cutWatchesAfterMs: undefined, refuseWatchVersions: undefined, slow: undefined });
    misbehave.answers.length = 0;
    const expected = (kind: string) => server.objects(kind).map(({ metadata }) => `${kind} demo/${metadata.name}`);
    await vi.waitFor(
      () => {
        const all = [...expected('Service'), ...expected('EndpointSlice'), 'Node node-1'].sort();
        expect(recorder.keys()).toEqual(all);
        for (const { metadata, endpoints } of server.objects('EndpointSlice')) {
          const { addresses } = (endpoints as { addresses: string[] }[])[0] ?? {};
          // An empty list is not written in protobuf.
          const { endpoints: told = [] } = recorder.object(`EndpointSlice demo/${metadata.name}`) as EndpointSlice;
          expect(told.map((endpoint) => endpoint.addresses)).toEqual(addresses ? [addresses] : []);
        }
        expect(recorder.present).toEqual([]);
      },
      { timeout: 10_000, interval: 50 },
    );
    expect(wronglyDeleted).toEqual([]);
    expect(recorder.violations).toEqual([]);

    await source.stop();
    client.close();
    await server.stop();
    rmSync(folder, { recursive: true });
  },
  120_000,
);
