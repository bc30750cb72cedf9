// Runs a suite of tests: `npm run test:unit` and its like (docs/testing.md). Files that failed run once more, alone: many
// tests have real kernels, programs and time limits, and several at a time on a machine that does other things as well are
// sometimes too slow for one. What is broken fails again; what passes then is named at the end.
//
//   node test/suite.mjs PROJECT [vitest arguments]
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

/** When more than so many files fail, it is not for want of time. */
const MOST_RUN_AGAIN = 6;

const [project, ...args] = process.argv.slice(2);
if (project === undefined) throw new Error('Usage: suite.mjs PROJECT [vitest arguments]');
// A Node.js that is told of more authorities reads them when it starts, 100 ms of a processor each time; tests bring their own.
delete process.env.NODE_EXTRA_CA_CERTS;
const folder = mkdtempSync(join(tmpdir(), 'nodeplane-suite-'));
const report = join(folder, 'report.json');
let child;
let wasStopped = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    wasStopped = true;
    child?.kill(signal);
  });
}
try {
  process.exitCode = await runSuite();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function runSuite() {
  const status = await vitest([...args, '--reporter=default', '--reporter=./test/suite-reporter.mjs']);
  const failed = status === 0 || wasStopped ? [] : failedFiles();
  if (failed.length === 0 || failed.length > MOST_RUN_AGAIN) return status;
  const names = failed.join(' ');
  console.log(`\nFailed, and now run once more, alone: ${names}\n`);
  const again = await vitest([...failed, '--no-file-parallelism']);
  console.log(again === 0 ? `\nPassed only when run alone: ${names}\n` : '\nFailed when run alone, too.\n');
  return again;
}

/** Their paths from here; none if something went wrong that is no file's, too. */
function failedFiles() {
  try {
    const { files, otherErrors } = JSON.parse(readFileSync(report, 'utf8'));
    return otherErrors === 0 ? files.map((path) => relative('.', path)) : [];
  } catch {
    return [];
  }
}

/** Resolves to the exit status of a run. */
function vitest(words) {
  child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--project', project, ...words], {
    stdio: 'inherit',
    env: { ...process.env, NODEPLANE_SUITE_REPORT: report },
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}
