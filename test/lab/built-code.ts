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

/**
 * Whether V8 takes the cache. In a process of its own, because V8 compares its flags too.
 *
 * @param flags of Node.js, as the program has them
 */
export function isCacheTaken(name: string, flags: readonly string[] = []): boolean {
  const { codeAt } = readBuiltCode(name);
  const compile = `
    const file = require('node:fs').readFileSync(${JSON.stringify(builtProgram(`${name}.code`))});
    const cachedData = file.subarray(${HEADER_BYTES}, ${codeAt});
    console.log(new (require('node:vm').Script)(file.toString('latin1', ${codeAt}), { cachedData }).cachedDataRejected);`;
  const { stdout, stderr } = spawnSync('node', [...flags, '-e', compile], { encoding: 'utf8' });
  if (stderr) throw new Error(stderr);
  return stdout === 'false\n';
}
