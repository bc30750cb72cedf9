import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { builtProgram } from './programs.ts';

/** Of the first line of a `.code` file. */
export const HEADER_BYTES = 64;

/** The code of a built program, who compiled it, and where behind V8's cache it begins. */
export function readBuiltCode(name: string) {
  const file = readFileSync(builtProgram(`${name}.code`));
  const [builtWith, cacheBytes] = file.toString('latin1', 0, HEADER_BYTES).trimEnd().split(' ');
  return { file, builtWith, codeAt: HEADER_BYTES + Number(cacheBytes) };
}

/** Tells of code that comes with V8's cache whether that is taken. */
const WATCH = `
  import vm from 'node:vm';
  vm.Script = class extends vm.Script {
    constructor(code, options) {
      super(code, options);
      if (options?.cachedData) console.error('cache', this.cachedDataRejected ? 'refused' : 'taken');
    }
  };`;

/** What becomes of the cache of a program that runs: `taken` or `refused`. V8 compares its flags too. */
export function cacheIn(
  program: string,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): string | undefined {
  const path = builtProgram(program);
  const [start] = readFileSync(path, 'utf8').split('\n');
  const flags = start!.split(' ').filter((word) => word.startsWith('--'));
  const watch = ['--import', `data:text/javascript,${encodeURIComponent(WATCH)}`];
  const { stderr } = spawnSync('node', [...flags, ...watch, path, ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  return /^cache (.*)$/m.exec(stderr)?.[1];
}
