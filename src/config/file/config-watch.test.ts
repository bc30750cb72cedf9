import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { type NodeplaneError, systemClock } from '../../core/index.ts';
import { ConfigWatch, type WatchedFiles } from './config-watch.ts';
import { systemFiles } from './watched-files.ts';

/** One file in one folder; the test says when something happens there. */
class FakeFiles implements WatchedFiles {
  content: string | undefined = 'old';
  folders = ['/etc'];
  watchFails = false;
  readonly watched = new Map<string, { changed: () => void; failed: (cause: unknown) => void }>();

  readFile(): string {
    if (this.content === undefined) throw new Error('ENOENT');
    return this.content;
  }

  foldersOf(): readonly string[] {
    return this.folders;
  }

  watch(folder: string, changed: () => void, failed: (cause: unknown) => void) {
    if (this.watchFails) throw new Error('ENOSPC');
    this.watched.set(folder, { changed, failed });
    return { close: () => this.watched.delete(folder) };
  }
}

describe('ConfigWatch', () => {
  const setUp = async () => {
    const files = new FakeFiles();
    const clock = new FakeClock();
    const ends: NodeplaneError[] = [];
    const watch = new ConfigWatch({
      file: { path: '/etc/c', text: 'old' },
      files,
      clock,
      ended: (reason) => ends.push(reason),
    });
    watch.start();
    await clock.advance(1000);
    return { files, clock, ends, watch, happens: (folder = '/etc') => files.watched.get(folder)!.changed() };
  };

  const setUpSpread = async () => {
    const files = new FakeFiles();
    const clock = new FakeClock();
    const ended = vi.fn();
    const putOff = vi.fn();
    const refused = vi.fn();
    const objection = (text: string) => (text === 'wrong' ? 'it is wrong' : undefined);
    const file = { path: '/etc/c', text: 'old' };
    const told = { ended, putOff, objection, refused };
    new ConfigWatch({ file, files, clock, ...told, spreadMs: 60_000, random: () => 0.5 }).start();
    await clock.advance(1000);
    const write = async (content: string | undefined) => {
      files.content = content;
      files.watched.get('/etc')!.changed();
      await clock.advance(1000);
    };
    return { clock, ended, putOff, refused, write };
  };

  it('goes on with a content that cannot be used, tells of it once, and ends with the next one that can', async () => {
    const { clock, ended, putOff, refused, write } = await setUpSpread();
    await write('wrong');
    await write('wrong');
    expect(refused.mock.calls).toEqual([['it is wrong']]);
    await write('old');
    await write('wrong');
    expect(refused).toHaveBeenCalledTimes(2);
    // Also while the end is put off.
    await write('new');
    expect(putOff.mock.calls).toEqual([[30_000]]);
    await write('wrong');
    await clock.advance(60_000);
    expect(ended).not.toHaveBeenCalled();
    await write('new');
    await clock.advance(60_000);
    expect(ended).toHaveBeenCalledTimes(1);
  });

  it('puts the end off by a part of the spread, once, however often the file changes meanwhile', async () => {
    const { clock, ended, putOff, write } = await setUpSpread();
    await write('new');
    await clock.advance(20_000);
    await write('newer');
    expect(putOff.mock.calls).toEqual([[30_000]]);
    expect(ended).not.toHaveBeenCalled();
    await clock.advance(9000);
    expect(ended).toHaveBeenCalledOnce();
  });

  it.each(['old', undefined])('does not end when the file is %j again before', async (content) => {
    const { clock, ended, putOff, write } = await setUpSpread();
    await write('new');
    await write(content);
    await clock.advance(600_000);
    expect(putOff.mock.calls).toEqual([[30_000], [undefined]]);
    expect(ended).not.toHaveBeenCalled();
    await write('newest');
    await clock.advance(60_000);
    expect(ended).toHaveBeenCalledOnce();
  });

  it('ends once when the content is another one, and stops watching', async () => {
    const { files, clock, ends, happens } = await setUp();
    files.content = 'new';
    happens();
    happens();
    await clock.advance(1000);
    expect(ends.map((end) => [end.code, end.message])).toEqual([
      ['ERR_CONFIG', 'content of the proxy server\'s configuration file was updated: "/etc/c"'],
    ]);
    expect(files.watched.size).toBe(0);
  });

  it.each([
    ['the same content', 'old'],
    ['no file', undefined],
  ])('goes on watching at %s', async (_, content) => {
    const { files, clock, ends, happens } = await setUp();
    files.content = content;
    happens();
    await clock.advance(1000);
    expect(ends).toEqual([]);
    files.content = 'new';
    happens();
    await clock.advance(1000);
    expect(ends).toHaveLength(1);
  });

  it('waits until the content no longer changes', async () => {
    const { files, clock, ends, happens } = await setUp();
    for (const half of ['', 'n', 'ne']) {
      files.content = half;
      happens();
      await clock.advance(100);
    }
    files.content = 'old';
    await clock.advance(1000);
    expect(ends).toEqual([]);
  });

  it('notices a change between loading and watching', async () => {
    const files = new FakeFiles();
    files.content = 'new';
    const clock = new FakeClock();
    const ended = vi.fn();
    new ConfigWatch({ file: { path: '/etc/c', text: 'old' }, files, clock, ended }).start();
    await clock.advance(1000);
    expect(ended).toHaveBeenCalledOnce();
  });

  it('follows a link that leads elsewhere', async () => {
    const { files, clock, happens, ends } = await setUp();
    files.folders = ['/etc', '/new'];
    happens();
    await clock.advance(1000);
    files.content = 'new';
    happens('/new');
    await clock.advance(1000);
    expect(ends).toHaveLength(1);
  });

  it('ends when it cannot watch any more', async () => {
    const { files, ends } = await setUp();
    files.watched.get('/etc')!.failed(new Error('EMFILE'));
    expect(ends.map(({ message }) => message)).toEqual(['Cannot watch the configuration file "/etc/c": EMFILE']);
  });

  it('ends when it cannot watch at all', () => {
    const files = new FakeFiles();
    files.watchFails = true;
    const ended = vi.fn();
    new ConfigWatch({ file: { path: '/etc/c', text: 'old' }, files, clock: new FakeClock(), ended }).start();
    expect(ended).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'ERR_CONFIG' }));
  });

  it('says nothing after it is closed', async () => {
    const { files, clock, ends, watch, happens } = await setUp();
    files.content = 'new';
    happens();
    watch.close();
    await clock.advance(1000);
    expect(ends).toEqual([]);
    expect(files.watched.size).toBe(0);
  });
});

describe('the real file system', () => {
  let folder: string;
  let watch: ConfigWatch | undefined;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'config-watch-'));
  });
  afterEach(() => {
    watch?.close();
    rmSync(folder, { recursive: true });
  });

  /** Returns after the watch's own first look, so that only an event can bring about the next one. */
  const start = async (path: string) => {
    const ended = vi.fn();
    const file = { path, text: systemFiles.readFile(path) };
    const readFile = vi.fn(systemFiles.readFile);
    watch = new ConfigWatch({ file, files: { ...systemFiles, readFile }, clock: systemClock, ended });
    watch.start();
    await vi.waitFor(() => expect(readFile).toHaveBeenCalled(), 5000);
    return ended;
  };
  const ends = (ended: ReturnType<typeof vi.fn>) => vi.waitFor(() => expect(ended).toHaveBeenCalledOnce(), 5000);

  it('tells of a file that is written', async () => {
    const path = join(folder, 'c');
    writeFileSync(path, 'old');
    const ended = await start(path);
    writeFileSync(path, 'new');
    await ends(ended);
  });

  it('tells of a ConfigMap that the kubelet updates', async () => {
    for (const name of ['old', 'new']) {
      mkdirSync(join(folder, `..${name}`));
      writeFileSync(join(folder, `..${name}`, 'config.conf'), name);
    }
    symlinkSync('..old', join(folder, '..data'));
    symlinkSync('..data/config.conf', join(folder, 'config.conf'));
    const ended = await start(join(folder, 'config.conf'));
    symlinkSync('..new', join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    rmSync(join(folder, '..old'), { recursive: true });
    await ends(ended);
  });

  it('tells of a linked file in another folder', async () => {
    mkdirSync(join(folder, 'elsewhere'));
    mkdirSync(join(folder, 'here'));
    writeFileSync(join(folder, 'elsewhere', 'c'), 'old');
    symlinkSync('../elsewhere/c', join(folder, 'here', 'c'));
    const ended = await start(join(folder, 'here', 'c'));
    writeFileSync(join(folder, 'elsewhere', 'c'), 'new');
    await ends(ended);
  });
});
