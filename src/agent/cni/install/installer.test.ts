import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { CONFLIST_FILE, standardConflist } from './conflist.ts';
import { CniInstaller } from './installer.ts';

const UNKNOWN = 'The pod CIDRs of this node are not known yet';
const [INFO, WARN] = [30, 40];
const SECOND = 1000;

let folder: string;
let clock: FakeClock;
let objection: string | undefined;
let ask: () => Promise<string | undefined> | string | undefined;
let lines: { level: number; reason?: string; msg?: string }[];
let installer: CniInstaller;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-installer-'));
  clock = new FakeClock();
  objection = UNKNOWN;
  ask = () => objection;
  lines = [];
  const log = new Writable({
    write(chunk, _, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  installer = new CniInstaller({
    binDir: join(folder, 'bin'),
    confDir: join(folder, 'net.d'),
    plugin: Buffer.from('plugin'),
    clock,
    conflist: standardConflist(),
    objection: async () => ask(),
    logger: pino(log),
  });
});
afterEach(async () => {
  await installer.stop();
  rmSync(folder, { recursive: true });
});

const conflist = () => join(folder, 'net.d', CONFLIST_FILE);
/** The disk has a time of its own. */
const installed = () => expect.poll(() => installer.whyNotInstalled(), { timeout: 10_000 }).toBeUndefined();
const levels = () => lines.filter(({ reason }) => reason?.includes(UNKNOWN)).map(({ level }) => level);

it('says nothing of a look that its own end breaks off', async () => {
  let end: (error: Error) => void = () => {};
  const asked = new Promise<void>((resolve) => {
    ask = () =>
      new Promise((_, reject) => {
        end = reject;
        resolve();
      });
  });
  void installer.start();
  await asked;
  const stopped = installer.stop();
  end(new Error('the thread ended'));
  await stopped;
  expect(lines.filter(({ level }) => level >= WARN)).toEqual([]);
});

it('tells of a configuration that the runtime takes before ours, also one that comes later, for as long as it is there', async () => {
  objection = undefined;
  await installer.start();
  expect(installer.whyNotAsked()).toBe('');
  const told = () => lines.filter(({ msg }) => msg?.startsWith('The runtime takes')).map(({ level }) => level);
  const other = join(folder, 'net.d', '05-other.conflist');
  writeFileSync(other, '{ "plugins": [{ "type": "bridge" }] }');
  for (let look = 0; look < 2; look++) await installer.look();
  expect(installer.whyNotAsked()).toBe(
    `the container runtime takes "${other}", which sorts before ${CONFLIST_FILE}: rename or remove 05-other.conflist`,
  );
  expect(told()).toEqual([WARN]);
  rmSync(other);
  await installer.look();
  expect(installer.whyNotAsked()).toBe('');
  expect(told()).toEqual([WARN, INFO]);
});

describe('what somebody removes or changes', () => {
  // inotify's events come in real time, what follows from them by the clock.
  const soon = async (isSo: () => boolean) => {
    await expect.poll(async () => clock.advance(50).then(isSo), { interval: 5, timeout: 10_000 }).toBe(true);
  };
  let began: number;
  const elapsed = () => clock.now() - began;
  const plugin = () => join(folder, 'bin', 'nodeplane-cni');
  const isThere = () => existsSync(conflist()) && existsSync(plugin());

  beforeEach(async () => {
    objection = undefined;
    await installer.start();
    began = clock.now();
  });

  it('is there again at once, and told', async () => {
    rmSync(conflist());
    await soon(isThere);
    // When the disk has it.
    await soon(() => lines.at(-1)?.level === WARN);
    expect(lines.at(-1)).toMatchObject({ msg: expect.stringContaining('Somebody removed or changed') });
    writeFileSync(conflist(), '{}');
    await soon(() => readFileSync(conflist(), 'utf8') !== '{}');
    rmSync(plugin());
    await soon(isThere);
    expect(elapsed()).toBeLessThan(30 * SECOND);
  });

  it('is there again when the folders are gone', async () => {
    for (const name of ['bin', 'net.d']) rmSync(join(folder, name), { recursive: true });
    await soon(isThere);
    // And watched again.
    rmSync(conflist());
    await soon(isThere);
    expect(elapsed()).toBeLessThan(30 * SECOND);
  });

  it('is there again when the folder was gone, and the disk still writes what was put back', async () => {
    rmSync(join(folder, 'net.d'), { recursive: true });
    while (!existsSync(conflist())) {
      void clock.advance(50);
      await setImmediate();
    }
    rmSync(conflist());
    await soon(isThere);
    expect(elapsed()).toBeLessThan(30 * SECOND);
  });

  it('is put back once a second, and told once, while somebody removes it again and again', async () => {
    for (let i = 0; i < 10; i++) {
      rmSync(conflist());
      await soon(isThere);
    }
    expect(elapsed()).toBeGreaterThan(5 * SECOND);
    expect(lines.filter(({ level }) => level === WARN)).toHaveLength(3);
  });
});

describe('what keeps the configuration from being installed', () => {
  it('is no matter for people while a start may last', async () => {
    await installer.start();
    await clock.advance(10 * SECOND);
    expect(levels()).toEqual([INFO]);
    expect(existsSync(conflist())).toBe(false);
    objection = undefined;
    await clock.advance(2 * SECOND);
    await installed();
    expect(JSON.parse(readFileSync(conflist(), 'utf8')).name).toBe('nodeplane');
    expect(lines.every(({ level }) => level === INFO)).toBe(true);
  });

  it('is warned of once when it lasts longer, and again after it was gone', async () => {
    await installer.start();
    await clock.advance(300 * SECOND);
    expect(levels()).toEqual([INFO, WARN]);
    objection = undefined;
    await clock.advance(100 * SECOND);
    await installed();
    objection = UNKNOWN;
    await clock.advance(300 * SECOND);
    expect(levels()).toEqual([INFO, WARN, INFO, WARN]);
  });

  it('is warned of at once, and once, when it is the host', async () => {
    objection = undefined;
    writeFileSync(join(folder, 'bin'), 'a file in the place of the directory');
    await installer.start();
    await clock.advance(10 * SECOND);
    expect(lines.filter(({ level }) => level === WARN)).toHaveLength(1);
  });
});
