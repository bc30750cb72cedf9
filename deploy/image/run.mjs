import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Runs a program and returns what it prints. @throws with its words when it fails */
export function run(program, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1e9, ...options });
  if (error) throw new Error(`Cannot run ${program}: ${error.message}`);
  if (status === 0) return stdout;
  const said = `${stderr || stdout}`.trim().split('\n').slice(-10).join('\n');
  throw new Error(`${[program, ...args].join(' ')} ended with ${status}: ${said}`);
}

/** Version, commit and its date, which every file of the image has, so that two builds are the same. */
export function sourceFacts(root) {
  const { version, description, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const { NODEPLANE_COMMIT, SOURCE_DATE_EPOCH } = process.env;
  const git = (...args) => run('git', ['-C', root, ...args]).trim();
  const commit = NODEPLANE_COMMIT ?? git('rev-parse', 'HEAD');
  const epoch = Number(SOURCE_DATE_EPOCH ?? git('log', '-1', '--format=%ct'));
  if (!Number.isInteger(epoch)) throw new Error(`SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH} is no number of seconds`);
  const created = new Date(epoch * 1000).toISOString().replace('.000Z', 'Z');
  return { version, description, license, commit, epoch, created };
}
