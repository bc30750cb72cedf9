import { execFile, spawn } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createFolder, removeAll } from '../namespace.ts';

// What `npm run vm` promises, seen from this side. What is true inside is in test/vm.

const RUN = 'test/vm/run.mjs';
const CACHE = '.cache/vm';

afterAll(removeAll);

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function vm(command: string, env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      'node',
      [RUN, 'shell', command],
      { env: { ...process.env, ...env } },
      (_error, stdout, stderr) => resolve({ status: child.exitCode, stdout, stderr }),
    );
  });
}

/** A PATH on which QEMU is this shell script; `$console` is the file for the guest's console, `$folder` the run's folder. */
function withQemu(script: string): NodeJS.ProcessEnv {
  const folder = createFolder('qemu').path;
  const path = join(folder, 'qemu-system-x86_64');
  writeFileSync(
    path,
    `#!/bin/sh
for word; do case $word in file:*) console=\${word#file:} folder=\${console%/*} ;; esac; done
${script}
`,
  );
  chmodSync(path, 0o755);
  return { PATH: `${folder}:${process.env.PATH}` };
}

const runFolders = () => readdirSync(CACHE).filter((name) => name.startsWith('run-'));

describe('a command in the VM', () => {
  it('brings back its output byte for byte and its status; what it writes stays there', async () => {
    const { status, stdout } = await vm(
      'printf "one\\ntwo\\t\\303\\251\\n"; echo oops >&2; uname -v; touch left-behind /etc/left-behind; ls left-behind; exit 7',
    );
    expect(stdout).toMatch(/^one\ntwo\té\noops\n.*Debian.*\nleft-behind\n$/);
    expect(status).toBe(7);
    expect([existsSync('left-behind'), existsSync('/etc/left-behind')]).toEqual([false, false]);
  });

  it('that makes the kernel panic is reported with the console', async () => {
    const { status, stderr } = await vm('echo c >/proc/sysrq-trigger');
    expect(status).toBe(1);
    expect(stderr).toMatch(/vm: The VM stopped before its command ended.*console[\s\S]*(sysrq|call trace|panic)/i);
  });
});

describe('a VM', () => {
  it('that does not come up is ended at the time limit and reported with the console', async () => {
    const env = withQemu('echo "cannot mount" >"$console"; exec sleep 1000');
    const { status, stderr } = await vm('true', { ...env, NODEPLANE_VM_BOOT_SECONDS: '0.5' });
    expect(status).toBe(1);
    expect(stderr).toMatch(/vm: The VM was not up after 0.5 s.*\n {2}cannot mount\n/);
    expect(readFileSync(join(CACHE, 'failed-console.log'), 'utf8')).toBe('cannot mount\n');
  });

  it('that QEMU refuses is reported with QEMU’s own words', async () => {
    const { status, stderr } = await vm('true', withQemu('echo "no such machine" >&2; exit 3'));
    expect(status).toBe(1);
    expect(stderr).toMatch(/no such machine\nvm: QEMU ended with status 3/);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('is ended by %s, and leaves no folder', async (signal) => {
    const pidFile = join(createFolder('pid').path, 'pid');
    const env = withQemu(`echo $$ >${pidFile}.new; mv ${pidFile}.new ${pidFile}; exec sleep 1000`);
    const others = runFolders();
    const child = spawn('node', [RUN, 'shell', 'true'], { env: { ...process.env, ...env }, stdio: 'ignore' });
    const status = new Promise((resolve) => child.on('exit', resolve));
    await expect.poll(() => existsSync(pidFile)).toBe(true);
    const pid = readFileSync(pidFile, 'utf8').trim();
    const [folder] = runFolders().filter((name) => !others.includes(name));
    child.kill(signal);
    expect(await status).toBe(signal === 'SIGINT' ? 130 : 143);
    expect(existsSync(`/proc/${pid}`)).toBe(false);
    expect(runFolders()).not.toContain(folder);
  });
});
