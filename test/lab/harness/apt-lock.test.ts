import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

// scripts/apt-get with the real apt-get, in folders of its own: the machine's packages are not touched.

const PROGRAM = new URL('../../../scripts/apt-get', import.meta.url).pathname;

/** As apt locks: struct flock with all else 0. Prints when it holds the lock, and ends when its standard input does. */
const HOLDER = `use Fcntl; open F, ">>", $ARGV[0]; my $all = pack "s s x4 l! l! i x4", F_WRLCK, 0, 0, 0, 0;
fcntl F, F_SETLK, $all or die; $| = 1; print "held"; <STDIN>`;

let folder: string;
let holder: ChildProcess;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-apt-'));
  for (const name of ['lists/partial', 'archives/partial', 'dpkg']) mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, 'dpkg/status'), '');
  writeFileSync(
    join(folder, 'apt.conf'),
    `Dir::State::lists "${folder}/lists"; Dir::State::status "${folder}/dpkg/status"; Dir::Cache "${folder}";
Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "/dev/null"; APT::Sandbox::User "root";\n`,
  );
});

afterEach(() => {
  holder.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

async function hold(lock: string): Promise<void> {
  holder = spawn('perl', ['-e', HOLDER, join(folder, lock)], { stdio: ['pipe', 'pipe', 'inherit'] });
  await new Promise((resolve) => holder.stdout!.once('data', resolve));
}

/** Runs it; `said` is its standard error so far. */
function aptGet(args: readonly string[], waitSeconds: number) {
  const env = { ...process.env, APT_CONFIG: join(folder, 'apt.conf'), APT_WAIT_SECONDS: String(waitSeconds) };
  const errors = join(folder, 'said');
  const child = spawn('bash', ['-c', 'exec "$0" "$@" 2>"$ERRORS"', PROGRAM, ...args], {
    env: { ...env, ERRORS: errors },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  return { ended, said: () => readFileSync(errors, 'utf8') };
}

it.each([
  ['the package lists', 'lists/lock', ['update']],
  ['dpkg', 'dpkg/lock-frontend', ['install', '-y']],
  ['dpkg itself', 'dpkg/lock', ['install', '-y']],
  ['the downloaded packages', 'archives/lock', ['install', '-y']],
])('waits for the lock of %s, and says who has it', async (_what, lock, args) => {
  await hold(lock);
  const { ended, said } = aptGet(args, 60);
  await expect
    .poll(() => said())
    .toMatch(
      new RegExp(
        '^apt-get: another apt is at work, waiting \\d+ s at most\\. ' +
          `Could not get lock ${join(folder, lock)}\\. It is held by process ${holder.pid} \\(perl\\)\n$`,
      ),
    );
  holder.stdin!.end();
  expect(await ended).toBe(0);
});

it('gives up in time, with the words of apt-get', async () => {
  await hold('lists/lock');
  // 5: the first apt-get alone takes more than one second on a busy machine, and then there is nothing left to wait for.
  const { ended, said } = aptGet(['update'], 5);
  expect(await ended).toBe(100);
  expect(said()).toMatch(/waiting [1-5] s at most.*\n(.*\n)*E: Unable to lock directory/);
});

it('fails at once with what no waiting helps against', async () => {
  await hold('unrelated');
  const { ended, said } = aptGet(['install', '-y', 'nodeplane-no-such-package'], 60);
  expect(await ended).toBe(100);
  expect(said()).toContain('E: Unable to locate package nodeplane-no-such-package');
});
