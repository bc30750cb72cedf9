import { EventEmitter } from 'node:events';
import { mkdtempSync, readSync, rmSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DestinationStream, pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { inBackground, systemClock, tellFailure } from '../core/index.ts';
import { EventRecorder } from '../kube/index.ts';
import { libc, watchReadable } from '../sys/index.ts';
import { BackgroundFailures, type ProcessEvents } from './background-failures.ts';
import { standardConflist } from './cni/install/conflist.ts';
import { CniInstaller } from './cni/install/installer.ts';
import { CniServer } from './cni/server/server.ts';
import { WorkerPool } from './cni/threads/worker-pool.ts';
import { listenHttp } from './http/http-listener.ts';

const broken = (): never => {
  throw new Error('broken');
};
const silent = pino({ level: 'silent' });

let folder: string;
let told: string[];
let listener: (warning: Error) => void;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-background-'));
  told = [];
  listener = (warning) => told.push(warning.message);
  process.on('warning', listener);
});

afterEach(() => {
  process.off('warning', listener);
  rmSync(folder, { recursive: true, force: true });
});

/** An answer to a request over HTTP; undefined when the connection was cut. */
async function get(port: number): Promise<string | undefined> {
  return fetch(`http://127.0.0.1:${port}/`).then(
    (response) => response.text(),
    () => undefined,
  );
}

// What is scheduled where nobody awaits it, made to fail. That it ended nothing shows in the test that goes on: an
// unhandled rejection or exception fails the whole run.
describe('work in the background', () => {
  it.each<[string, () => unknown]>([
    ['throws', broken],
    ['rejects', async () => broken()],
    ['rejects later', () => new Promise((_, reject) => setImmediate(() => reject(new Error('broken'))))],
  ])('that %s is told', async (_, work) => {
    inBackground('work', work);
    systemClock.setTimer(work, 0);
    await expect.poll(() => told).toEqual(expect.arrayContaining(['work: broken', 'timer: broken']));
  });

  it('a request over HTTP whose answer cannot be made', async () => {
    let answer: () => Promise<never> | { status: number; headers: Record<string, string>; body: string } = async () =>
      broken();
    const probe = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => probe.once('listening', resolve));
    const { port } = probe.address() as AddressInfo;
    await new Promise((resolve) => probe.close(resolve));
    const server = await listenHttp({
      host: '127.0.0.1',
      port,
      ipv6Only: false,
      answer: () => answer(),
      failed: () => {},
    });
    onTestFinished(() => server.close());
    expect(await get(port)).toBeUndefined();
    answer = () => ({ status: 200, headers: { bad: 'new\nline' }, body: '' });
    expect(await get(port)).toBeUndefined();
    answer = () => ({ status: 200, headers: {}, body: 'fine' });
    expect(await get(port)).toBe('fine');
    expect(told).toEqual(['HTTP request: broken', expect.stringMatching(/^HTTP request: Invalid character in header/)]);
  });

  it('a connection to the CNI server', async () => {
    const path = join(folder, 'cni', 'cni.sock');
    const logger = { ...silent, warn: broken } as unknown as typeof silent;
    const server = new CniServer({ path, serve: async () => undefined, clock: systemClock, logger, transferMs: 10 });
    await server.listen();
    onTestFinished(() => server.close());
    for (const round of [1, 2]) {
      const client = connect(path);
      client.on('error', () => {});
      await expect.poll(() => told).toEqual(Array(round).fill('CNI connection: broken'));
      client.destroy();
    }
    await server.drain(0);
  });

  it('a thread for CNI requests that cannot be begun', async () => {
    const pool = new WorkerPool({ file: 'not/absolute.js', clock: new FakeClock() });
    for (let i = 0; i < 2; i++) {
      await expect(pool.run({ environment: {}, stdin: '' })).rejects.toMatchObject({ code: 'ERR_CNI_REQUEST' });
    }
    await pool.stop();
  });

  it('a round of the CNI installer, and the next one comes', async () => {
    const failures: unknown[] = [];
    const clock = new FakeClock(0, (error) => failures.push(error));
    let rounds = 0;
    const objection = async () => `no ${rounds++}`;
    const logger = { ...silent, info: broken, warn: broken } as unknown as typeof silent;
    const installer = new CniInstaller({
      binDir: join(folder, 'bin'),
      confDir: join(folder, 'conf'),
      plugin: Buffer.from('plugin'),
      conflist: standardConflist(),
      objection,
      clock,
      logger,
    });
    await expect(installer.start()).rejects.toThrow('broken');
    await expect(installer.look()).rejects.toThrow('broken');
    logger.info = logger.warn = () => {};
    await installer.look();
    expect(rounds).toBe(1);
    await installer.stop();
  });

  it('a callback for a descriptor, and others are called on', async () => {
    const fds = [libc().eventfd(0, 0o4000), libc().eventfd(0, 0o4000)];
    let calls = 0;
    const read = (fd: number) => readSync(fd, Buffer.alloc(8));
    const stops = [
      watchReadable(fds[0]!, () => {
        read(fds[0]!);
        broken();
      }),
      watchReadable(fds[1]!, () => {
        read(fds[1]!);
        calls++;
      }),
    ];
    onTestFinished(() => {
      for (const stop of stops) stop();
      for (const fd of fds) libc().close(fd);
    });
    const one = Buffer.from(new BigUint64Array([1n]).buffer);
    for (let round = 1; round <= 3; round++) {
      for (const fd of fds) writeSync(fd, one);
      await expect.poll(() => [told.length, calls]).toEqual([round, round]);
    }
    expect(told[0]).toBe('descriptor watch: broken');
  });

  it('the record of an Event', async () => {
    const server = new URL('https://192.0.2.1:6443');
    const client = { server, send: () => Promise.reject(new Error('away')), close() {} };
    const recorder = new EventRecorder({
      client,
      controller: 'c',
      nodeName: 'n',
      clock: { ...systemClock, wallTime: () => Number.NaN },
    });
    const event = { type: 'Normal', reason: 'R', action: 'A', note: '' } as const;
    recorder.record({ kind: 'Node', name: 'n', namespace: '' }, event);
    await expect.poll(() => told).toEqual(['Event: Invalid time value']);
    await recorder.drain(10);
    recorder.stop();
  });
});

describe('the process', () => {
  const setup = () => {
    const lines: Record<string, unknown>[] = [];
    const stream: DestinationStream = { write: (line) => void lines.push(JSON.parse(line)) };
    const failures = new BackgroundFailures(pino({ base: null, timestamp: false }, stream));
    const registry = new Registry();
    failures.register(registry);
    const events = Object.assign(new EventEmitter(), { exit: vi.fn() });
    events.on('warning', broken);
    failures.listen(events as ProcessEvents);
    return { failures, events, lines, metrics: () => registry.metrics() };
  };

  it('logs and counts what was told, by what was being done', async () => {
    const { events, lines, metrics } = setup();
    process.once('warning', (warning) => events.emit('warning', warning));
    tellFailure('timer', new TypeError('no function'));
    await expect
      .poll(() => lines)
      .toMatchObject([
        { level: 50, work: 'timer', err: { type: 'TypeError', message: 'no function', stack: expect.any(String) } },
      ]);
    expect(await metrics()).toContain('nodeplane_background_failures_total{work="timer"} 1');
  });

  it('goes on after a rejection nobody handled', async () => {
    const { events, lines, metrics } = setup();
    events.emit('unhandledRejection', new Error('lost'));
    expect(lines).toMatchObject([{ level: 50, work: 'unknown', err: { message: 'lost' } }]);
    expect(await metrics()).toContain('nodeplane_background_failures_total{work="unknown"} 1');
    expect(events.exit).not.toHaveBeenCalled();
  });

  it('ends after an exception nobody caught, with its reason as the last line', () => {
    const { events, lines } = setup();
    events.emit('uncaughtException', new Error('half-way'));
    expect(lines).toMatchObject([{ level: 60, err: { message: 'half-way', stack: expect.any(String) } }]);
    expect(events.exit).toHaveBeenCalledWith(1);
  });

  it('counts what the proxy tells', async () => {
    const { failures, metrics } = setup();
    const common = { family: 'IPv4', at: 0, error: new Error('EMFILE') } as const;
    failures.observe({ ...common, kind: 'workFailed', work: 'address listing' });
    failures.observe({ ...common, kind: 'verifyFailed' });
    expect(await metrics()).toMatch(/work="address listing"} 1\n.*work="verification"} 1/);
  });
});
