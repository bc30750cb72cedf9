import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { afterAll, describe, expect, it } from 'vitest';
import { isNotFound } from '../../../src/core/index.ts';
import {
  checkOwnDirectory,
  exec,
  inNetns,
  isOwnNetns,
  makeOwnDirectory,
  netnsIdentity,
  openNetns,
  readSysctl,
  withFileLock,
  writeSysctl,
} from '../../../src/sys/index.ts';
import { createFolder, createNamespace, removeAll } from '../namespace.ts';

const namespace = createNamespace('sys');
const { path } = namespace;
const folder = createFolder('sys').path;

afterAll(removeAll);

describe('inNetns', () => {
  it('runs inside and comes back, also after a throw', () => {
    const outside = netnsIdentity('/proc/thread-self/ns/net');
    expect(inNetns(path, () => netnsIdentity('/proc/thread-self/ns/net'))).toBe(netnsIdentity(path));
    expect(() =>
      inNetns(path, () => {
        throw new Error('inside');
      }),
    ).toThrow('inside');
    expect(netnsIdentity('/proc/thread-self/ns/net')).toBe(outside);
    expect(isOwnNetns(path)).toBe(false);
  });

  it('names the path of a namespace that is not there, and leaks no descriptor', () => {
    expect(() => openNetns('/run/netns/nodeplane-none')).toThrow(expect.objectContaining({ code: 'ERR_NETNS' }));
    expect(() => inNetns('/proc/self/status', () => 1)).toThrow(
      /Cannot enter network namespace "\/proc\/self\/status"/,
    );
    // Only descriptors of namespaces: the test runner opens and closes others meanwhile.
    const isNamespace = (descriptor: string): boolean => {
      try {
        return /^net:\[|\/netns\//.test(readlinkSync(`/proc/self/fd/${descriptor}`));
      } catch {
        return false; // closed since the folder was listed
      }
    };
    const open = () => readdirSync('/proc/self/fd').filter(isNamespace).length;
    const before = open();
    for (let i = 0; i < 20; i++) inNetns(path, () => 1);
    expect(open()).toBe(before);
    const held = openNetns(path);
    expect(open()).toBe(before + 1);
    held.close();
  });

  it('keeps no descriptor when there is none for the way back', () => {
    const limit = (words: string) =>
      execFileSync('prlimit', [`--pid=${process.pid}`, ...words.split(' ')], { encoding: 'utf8' });
    const before = limit('--nofile --output=SOFT --noheadings --raw').trim();
    limit('--nofile=2048:');
    const held: number[] = [];
    try {
      for (;;) held.push(openSync('/dev/null', 'r'));
    } catch {
      closeSync(held.pop()!);
    }
    try {
      expect(() => inNetns(path, () => 1)).toThrow('Cannot open network namespace');
      held.push(openSync('/dev/null', 'r'));
    } finally {
      for (const descriptor of held) closeSync(descriptor);
      limit(`--nofile=${before}:`);
    }
  });
});

describe('sysctl', () => {
  it('is read and written in the namespace entered, and only when different', () => {
    inNetns(path, () => {
      expect(writeSysctl('net/ipv4/ip_forward', 1)).toBe(true);
      expect(writeSysctl('net/ipv4/ip_forward', 1)).toBe(false);
      expect(readSysctl('net/ipv4/ip_forward')).toBe('1');
    });
  });

  it('names a sysctl that does not exist', () => {
    let caught: unknown;
    try {
      readSysctl('net/ipv4/nodeplane_none');
    } catch (error) {
      caught = error;
    }
    expect(isNotFound(caught)).toBe(true);
    expect(String(caught)).toContain('net/ipv4/nodeplane_none');
  });
});

describe('withFileLock', () => {
  it('waits for another process, then gives up with its name', async () => {
    const lock = join(folder, 'lock');
    const holder = spawn('flock', ['--no-fork', lock, 'sleep', '30']);
    try {
      await expect
        .poll(() => {
          try {
            withFileLock(lock, () => 1, { timeoutMs: 0 });
            return 'free';
          } catch (error) {
            return (error as { code: string }).code;
          }
        })
        .toBe('ERR_LOCK_TIMEOUT');
      expect(() => withFileLock(lock, () => 1, { timeoutMs: 30 })).toThrow(
        `Waited 30 ms for the lock "${lock}", held by process ${holder.pid} (sleep)`,
      );
    } finally {
      holder.kill('SIGKILL');
    }
  });

  it('is released when the body throws', () => {
    const lock = join(folder, 'lock2');
    expect(() =>
      withFileLock(lock, () => {
        throw new Error('body');
      }),
    ).toThrow('body');
    expect(withFileLock(lock, () => 'again', { timeoutMs: 0 })).toBe('again');
  });
});

describe('withFileLock with a gate', () => {
  const paths = (name: string) => [join(folder, name), join(folder, `${name}-gate`)] as const;
  /** Ends when killed; has the lock when this resolves. */
  const holder = async (...args: string[]) => {
    const child = spawn('flock', ['--no-fork', ...args, 'sh', '-c', 'echo held; exec sleep 30'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await new Promise((resolve) => child.stdout.once('data', resolve));
    return child;
  };
  const ended = (child: ChildProcess) => {
    child.kill('SIGKILL');
    return new Promise((resolve) => child.once('exit', resolve));
  };

  it('lets others share the lock, and nobody who wants to behind one that waits for it alone', async () => {
    const [lock, gate] = paths('lock-shared');
    const sharing = await holder('--shared', lock);
    expect(withFileLock(lock, () => 'shared', { gate, shared: true, timeoutMs: 0 })).toBe('shared');
    const waiting = await holder(gate);
    expect(() => withFileLock(lock, () => 1, { gate, shared: true, timeoutMs: 30 })).toThrow(
      `Waited 30 ms for the lock "${gate}", held by process ${waiting.pid} (sleep)`,
    );
    await ended(waiting);
    expect(withFileLock(lock, () => 'shared', { gate, shared: true, timeoutMs: 0 })).toBe('shared');
    await ended(sharing);
  });

  it('names who has the lock to those that wait behind another one', async () => {
    const [lock, gate] = paths('named');
    const [having, waiting] = [await holder(lock), await holder(gate)];
    for (const shared of [true, false]) {
      expect(() => withFileLock(lock, () => 1, { gate, shared, timeoutMs: 30 })).toThrow(
        `Waited 30 ms for the lock "${lock}", held by process ${having.pid} (sleep)`,
      );
    }
    await ended(waiting);
    await ended(having);
  });

  it('gives the gate back when it has the lock, and when it gave up', async () => {
    const [lock, gate] = paths('given-back');
    const isFree = () => withFileLock(gate, () => true, { timeoutMs: 0 });
    expect(withFileLock(lock, isFree, { gate })).toBe(true);
    const having = await holder(lock);
    expect(() => withFileLock(lock, () => 1, { gate, timeoutMs: 30 })).toThrow('Waited 30 ms');
    expect(isFree()).toBe(true);
    await ended(having);
  });
});

describe('withFileLock, where others can write', () => {
  it('takes the right to open it from others', () => {
    const lock = join(folder, 'open');
    writeFileSync(lock, '');
    chmodSync(lock, 0o666);
    expect(withFileLock(lock, () => statSync(lock).mode & 0o777)).toBe(0o600);
  });

  it('refuses a file of another user, a link and what is no file', () => {
    const [foreign, link, fifo] = ['foreign', 'link', 'fifo'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(foreign, '');
    chownSync(foreign, 65534, 65534);
    symlinkSync(join(folder, 'target'), link);
    execFileSync('mkfifo', [fifo]);
    const lock = (path: string) => () => withFileLock(path, () => 1, { timeoutMs: 0 });
    expect(lock(foreign)).toThrow(/foreign": it belongs to user 65534/);
    expect(lock(link)).toThrow(expect.objectContaining({ errnoName: 'ELOOP' }));
    expect(lock(fifo)).toThrow(/it is no regular file/);
    expect(readdirSync(folder)).not.toContain('target');
  });
});

describe('own directories', () => {
  const make = (name: string, mode: number, owner = 0): string => {
    const directory = join(folder, name);
    mkdirSync(directory);
    chmodSync(directory, mode);
    chownSync(directory, owner, owner);
    return directory;
  };
  const modeOf = (directory: string) => statSync(directory).mode & 0o7777;

  it('are made for root alone, and left as they are when they are there', () => {
    const shared = make('shared', 0o755);
    makeOwnDirectory(shared, 'a test');
    expect(modeOf(shared)).toBe(0o755);
    makeOwnDirectory(join(shared, 'a/b'), 'a test');
    expect(modeOf(join(shared, 'a/b'))).toBe(0o700);
    expect(modeOf(shared)).toBe(0o755);
  });

  it.each([
    ['writable by all', 0o777, 0, 'has mode 0777'],
    ['writable by all and sticky', 0o1777, 0, 'has mode 1777'],
    ['writable by a group', 0o770, 0, 'has mode 0770'],
    ['of a user', 0o700, 65534, 'belongs to user 65534'],
  ])('%s are refused', (_, mode, owner, reason) => {
    const directory = make(`refused-${mode}-${owner}`, mode, owner);
    expect(() => makeOwnDirectory(directory, 'a test')).toThrow(`"${directory}" ${reason}`);
    expect(() => checkOwnDirectory(directory, 'a test')).toThrow(expect.objectContaining({ code: 'ERR_UNSAFE_PATH' }));
    expect(modeOf(directory)).toBe(mode);
  });

  it('inside a directory that others could replace are refused and not made', () => {
    const outer = make('outer', 0o700, 65534);
    const link = join(folder, 'link-to-outer');
    symlinkSync(outer, link);
    for (const path of [join(outer, 'in'), join(link, 'in')])
      expect(() => makeOwnDirectory(path, 'a test')).toThrow(`"${outer}" belongs to user 65534`);
    expect(readdirSync(outer)).toEqual([]);
  });
});

describe('exec', () => {
  it('passes input, output and status on', async () => {
    expect(await exec('sh', ['-c', 'cat; echo oops >&2; exit 3'], { input: 'hello' })).toEqual({
      status: 3,
      stdout: 'hello',
      stderr: 'oops\n',
    });
  });

  it('gives input in pieces, as the program reads them', async () => {
    const pieces = Array.from({ length: 40 }, (_, n) => `${n} ${'x'.repeat(50_000)}\n`);
    let asked = 0;
    const input = {
      *[Symbol.iterator]() {
        for (const piece of pieces) {
          asked++;
          yield piece;
        }
      },
    };
    expect(await exec('cat', [], { input })).toEqual({ status: 0, stdout: pieces.join(''), stderr: '' });
    expect(asked).toBe(pieces.length);
    // It ends without reading: what is left is not asked for, and its status is told.
    asked = 0;
    expect(await exec('sh', ['-c', 'head -c 5; exit 3'], { input })).toMatchObject({ status: 3, stdout: '0 xxx' });
    expect(asked).toBeLessThan(pieces.length);
  });

  it('tells when there are no more pieces because making them failed', async () => {
    const input = {
      *[Symbol.iterator]() {
        yield 'first';
        throw new TypeError('no second piece');
      },
    };
    await expect(exec('cat', [], { input })).rejects.toMatchObject({
      code: 'ERR_EXEC',
      cause: { message: 'no second piece' },
    });
  });

  it('names a program that is missing and one that takes too long', async () => {
    await expect(exec('nodeplane-no-such-program', [])).rejects.toMatchObject({ code: 'ERR_EXEC' });
    await expect(exec('sleep', ['30'], { timeoutMs: 50 })).rejects.toThrow('did not end within 50 ms');
  });

  it('ends in time although a grandchild holds the output, and leaves no grandchild', async () => {
    const marker = `${1000 + (process.pid % 1000)}.75`;
    // The second one outlives the shell, which has exited by itself when the time is up.
    for (const script of [`sleep ${marker} & wait`, `sleep ${marker} & exit 0`]) {
      const started = performance.now();
      await expect(exec('sh', ['-c', script], { timeoutMs: 300 })).rejects.toMatchObject({ code: 'ERR_EXEC' });
      expect(performance.now() - started).toBeLessThan(20_000);
      await expect.poll(() => processesWith(marker)).toEqual([]);
    }
  });

  it('ends in time although a process that left the group holds the output', async () => {
    const file = join(folder, 'left.pid');
    const script = `setsid sh -c 'echo $$ > ${file}; exec sleep 1000' & wait`;
    await expect(exec('sh', ['-c', script], { timeoutMs: 2000 })).rejects.toThrow('did not end within 2000 ms');
    process.kill(Number(readFileSync(file, 'utf8')), 'SIGKILL');
  });

  it('kills what prints without end, and what is cancelled', async () => {
    await expect(exec('yes', [], { outputLimit: 1_000_000 })).rejects.toThrow('printed more than 1000000 bytes');
    const controller = new AbortController();
    const cancelled = exec('sleep', ['1000'], { signal: controller.signal });
    controller.abort();
    await expect(cancelled).rejects.toThrow('sleep 1000 was cancelled');
    await expect(exec('sleep', ['1000'], { signal: controller.signal })).rejects.toThrow('was cancelled');
  });

  it('gives lines as they are printed, and ends a program whose lines cannot be taken', async () => {
    const lines: string[] = [];
    const readLine = (line: string) => void lines.push(line);
    const program = 'printf "a\\n\\nb"; echo error >&2; exit 3';
    expect(await exec('sh', ['-c', program], { readLine })).toEqual({ status: 3, stdout: '', stderr: 'error\n' });
    expect(lines).toEqual(['a', '', 'b']);
    const refuse = () => {
      throw new Error('no line of mine');
    };
    await expect(exec('yes', [], { readLine: refuse })).rejects.toThrow('no line of mine');
  });

  it('fails by a rejection alone when there is no descriptor left', () => {
    const source = `
      import { openSync } from 'node:fs';
      import { exec } from './src/sys/exec.ts';
      await import('node:child_process');
      try { for (;;) openSync('/dev/null'); } catch {}
      const outcome = await exec('true', []).catch(({ code, cause }) => code + ' ' + cause.code);
      process.stdout.write(String(outcome));`;
    const file = join(folder, 'no-descriptor.mjs');
    const stdin = { contents: source, resolveDir: process.cwd() };
    buildSync({ stdin, bundle: true, platform: 'node', format: 'esm', outfile: file });
    const { stdout, stderr } = spawnSync('prlimit', ['--nofile=64', process.execPath, file], { encoding: 'utf8' });
    expect({ stdout, stderr }).toEqual({ stdout: 'ERR_EXEC EMFILE', stderr: '' });
  });
});

/** The processes that have `argument` in their command line. */
function processesWith(argument: string): string[] {
  const commandLine = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    } catch {
      return [];
    }
  };
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && commandLine(name).includes(argument));
}
