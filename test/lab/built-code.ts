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

/** Tells of code that comes with V8's cache whether that is taken, and at the end how large the young generation becomes. */
const WATCH = `
  import v8 from 'node:v8';
  import vm from 'node:vm';
  vm.Script = class extends vm.Script {
    constructor(code, options) {
      super(code, options);
      if (options?.cachedData) console.error('cache', this.cachedDataRejected ? 'refused' : 'taken');
    }
  };
  process.on('exit', () => {
    Array.from({ length: 1e6 }, (_, i) => ({ i }));
    console.error('young', v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size);
  });`;

/**
 * A program that ran: whether V8 took its cache, which it does for the flags alone that it was made under, and the
 * bytes of its young generation.
 */
export function runWatched(program: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
  const path = builtProgram(program);
  const [start] = readFileSync(path, 'utf8').split('\n');
  const flags = start!.split(' ').filter((word) => word.startsWith('--'));
  const watch = ['--import', `data:text/javascript,${encodeURIComponent(WATCH)}`];
  const { stderr } = spawnSync('node', [...flags, ...watch, path, ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  return { cache: /^cache (.*)$/m.exec(stderr)?.[1], young: Number(/^young (.*)$/m.exec(stderr)?.[1]) };
}
