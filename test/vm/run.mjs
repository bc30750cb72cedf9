// Boots Debian's kernel under QEMU on this working tree and runs one command in it, as root: `npm run test:vm` and
// `npm run vm`. docs/testing.md tells what the machine is like. Ends with the command's exit status.
//
//   node test/vm/run.mjs test [vitest arguments]    the tests of vitest's projects `vm` and `vm-alone`, or those named
//   node test/vm/run.mjs shell [command]            a shell, or one command line
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const tree = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const cache = join(tree, '.cache/vm');

/** Booting takes about 4 s on a quiet machine, on a very busy one two minutes; one that has not begun its command after this time never will. */
const BOOT_LIMIT_SECONDS = Number(process.env.NODEPLANE_VM_BOOT_SECONDS ?? 300);
/** The longest a test run may take. A shell may take for ever. */
const RUN_LIMIT_MINUTES = 60;

/**
 * The guest's clock is the TSC: by itself the kernel mistrusts an emulated one and takes the HPET. Nobody measured that tests
 * gain by it; a single thread that reads the clock does not. It looks for ten ticks whether the timer works, and panics
 * ("IO-APIC + timer doesn't work") where a busy machine did not run it meanwhile.
 */
const CLOCK = 'clocksource=tsc tsc=reliable no_timer_check';
/** QEMU translates code anew for each address that it is at. With libraries at the same ones in all processes `perl -e 0` takes 130 ms, not 280. */
const FAST = 'mitigations=off norandmaps';
/** Strings are copied byte by byte where the processor says that it is quick at that, which an emulated one is not: it costs a tenth of the time. */
const PROCESSOR = 'max,-erms';
/** What QEMU looks up most lies all over its memory, which so has fewer and larger pages: it saves a twentieth of the time. */
const LARGE_PAGES = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1' };

const [kind, ...args] = process.argv.slice(2);
if (kind !== 'test' && kind !== 'shell') throw new Error('Usage: run.mjs test|shell [arguments]');
execFileSync(join(tree, 'test/vm/image'), { stdio: 'inherit' });
process.exitCode = await run(kind === 'test' ? testCommand(args) : shellCommand(args), {
  interactive: kind === 'shell' && args.length === 0,
  limitMinutes: kind === 'test' ? RUN_LIMIT_MINUTES : undefined,
});

function testCommand(vitestArguments) {
  const words = ['node', 'test/suite.mjs', 'vm*', ...vitestArguments];
  return words.map(quote).join(' ');
}

function shellCommand(words) {
  return words.length === 0 ? 'exec bash -i' : words.join(' ');
}

/**
 * Runs a command line in a fresh VM, its output on ours.
 *
 * @returns its exit status; 1 when the VM did not boot, stopped early or took longer than `limitMinutes`
 */
async function run(command, { interactive, limitMinutes }) {
  // Written by the guest as it goes: `state` when it is up, `status` at the end.
  removeAbandonedFolders();
  const folder = mkdtempSync(join(cache, `run-${process.pid}-`));
  const consoleLog = join(folder, 'console.log');
  writeFileSync(join(folder, 'path'), `${tree}\n`);
  writeFileSync(join(folder, 'command'), script(command, interactive));
  try {
    const trouble = await boot(folder, { interactive, limitMinutes });
    const status = join(folder, 'status');
    if (!trouble && existsSync(status)) return Number(readFileSync(status, 'utf8'));
    if (trouble?.signal) return trouble.status;
    report(trouble?.sentence ?? 'The VM stopped before its command ended', consoleLog);
    return 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What runs that were killed have left. */
function removeAbandonedFolders() {
  for (const name of readdirSync(cache)) {
    const pid = /^run-(\d+)-/.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(cache, name), { recursive: true, force: true });
  }
}

/** What bash runs on the guest's terminal. */
function script(command, interactive) {
  const { columns, rows } = process.stdout;
  const environment = { TERM: process.env.TERM ?? 'dumb', NO_COLOR: process.env.NO_COLOR };
  const exports = Object.entries(environment).filter(([, value]) => value !== undefined);
  return [
    ...exports.map(([name, value]) => `export ${name}=${quote(value)}`),
    ...(columns && rows ? [`stty columns ${columns} rows ${rows}`] : []),
    // Without a terminal programs print whole lines and repaint nothing; no newline gets a carriage return.
    ...(interactive ? [command] : ['stty -opost', 'set -o pipefail', '(', command, ') </dev/null 2>&1 | cat']),
    '',
  ].join('\n');
}

/** Starts QEMU and waits for its end; resolves to what went wrong from the host's point of view, if anything. */
function boot(folder, { interactive, limitMinutes }) {
  let child;
  let trouble;
  const stop = (reason) => {
    trouble ??= reason;
    child?.kill('SIGKILL');
  };
  // Before there is a VM: a signal must not end this process alone.
  for (const [signal, number] of [
    ['SIGINT', 2],
    ['SIGTERM', 15],
    ['SIGHUP', 1],
  ]) {
    process.on(signal, () => stop({ signal, status: 128 + number }));
  }
  // Should this process be killed, the VM goes with it.
  child = spawn('setpriv', ['--pdeathsig', 'KILL', 'qemu-system-x86_64', ...machine(folder)], {
    stdio: [interactive ? 'inherit' : 'ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...LARGE_PAGES },
  });
  const timers = [
    setTimeout(() => {
      if (!existsSync(join(folder, 'state'))) stop({ sentence: `The VM was not up after ${BOOT_LIMIT_SECONDS} s` });
    }, BOOT_LIMIT_SECONDS * 1000),
    limitMinutes &&
      setTimeout(() => stop({ sentence: `The tests took longer than ${limitMinutes} minutes` }), limitMinutes * 60_000),
  ];
  return new Promise((resolve) => {
    const end = (reason) => {
      timers.forEach(clearTimeout);
      resolve(trouble ?? reason);
    };
    child.on('error', (error) => end({ sentence: `QEMU could not be started (${error.message}): run scripts/setup` }));
    child.on('exit', (code) => end(code ? { sentence: `QEMU ended with status ${code}` } : undefined));
  });
}

/** The machine as arguments of QEMU. Its kernel writes to a file, the command to our output. */
function machine(folder) {
  const share = (tag, path) =>
    `local,path=${path.replaceAll(',', ',,')},mount_tag=${tag},security_model=none,multidevs=remap`;
  const bootFolder = join(cache, 'kernel/boot');
  const kernel = readdirSync(bootFolder).find((file) => file.startsWith('vmlinuz-'));
  return [
    ...['-nodefaults', '-display', 'none', '-no-reboot', '-smp', '2', '-m', '3072', '-cpu', PROCESSOR],
    ...['-accel', process.env.NODEPLANE_VM_ACCEL ?? 'tcg,thread=multi'],
    ...['-kernel', join(bootFolder, kernel), '-initrd', join(cache, 'initramfs')],
    ...['-append', `console=ttyS0 panic=-1 oops=panic ${FAST} ${CLOCK}`],
    ...['-serial', `file:${join(folder, 'console.log')}`],
    ...['-virtfs', `${share('hostroot', '/')},readonly=on`, '-virtfs', share('run', folder)],
    ...['-chardev', 'stdio,id=terminal,signal=off', '-device', 'virtio-serial-pci'],
    ...['-device', 'virtconsole,chardev=terminal'],
  ];
}

/** Says what happened, with the end of the console log; the whole log is kept. */
function report(sentence, consoleLog) {
  const kept = join(cache, 'failed-console.log');
  const log = existsSync(consoleLog) ? readFileSync(consoleLog, 'utf8').replaceAll('\r', '').trimEnd() : '';
  writeFileSync(kept, `${log}\n`);
  const end = log.split('\n').slice(-40).join('\n  ');
  process.stderr.write(`vm: ${sentence}. The end of its console (all of it is in ${kept}):\n  ${end}\n`);
}

function quote(word) {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
