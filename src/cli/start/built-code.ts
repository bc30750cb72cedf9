import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Script } from 'node:vm';

/** Modules of Node.js that a short run mostly does without, and what they need in turn: 10 to 15 ms of its start. */
const SELDOM_NEEDED = new Set(['node:child_process', 'node:crypto']);

/** Of the first line of a `.code` file: the version of Node.js, and the number of bytes of V8's code cache. */
const HEADER_BYTES = 64;

/**
 * Runs code of a built program, with what V8 made of it when it was built: compiling it at every
 * start takes a quarter of an ADD, and a fifth of an agent's start. scripts/build.mjs says what the file looks like. Another
 * version of Node.js than the one it was built with compiles the code as ever: V8 itself does not see every difference.
 *
 * @param program its path: what lies beside it is found by that
 * @param options `compiled`: take what V8 made of it, all functions of which take memory, and not what is needed alone.
 *   `short`: a run that is over soon, and loads what it seldom needs when it needs it
 * @throws the system's error when the file cannot be read
 */
export function runBuiltCode(
  program: string,
  filename = `${program}.code`,
  { compiled = true, short = false } = {},
): void {
  const file = readFileSync(filename);
  const [builtWith, cacheBytes] = file.toString('latin1', 0, HEADER_BYTES).trimEnd().split(' ');
  const codeAt = HEADER_BYTES + Number(cacheBytes);
  const cachedData = compiled && builtWith === process.version ? file.subarray(HEADER_BYTES, codeAt) : undefined;
  const run = new Script(file.toString('latin1', codeAt), { filename, cachedData }).runInThisContext();
  const load = createRequire(program);
  run(short ? lazily(load) : load, program);
}

/**
 * The build turns imports into `module.name` where they are used, and import() into a look at all names: what stands for a module
 * loads it then.
 */
function lazily(load: NodeJS.Require): (id: string) => unknown {
  const standIn = (id: string) =>
    new Proxy({}, { get: (_, name) => Reflect.get(load(id), name), ownKeys: () => Reflect.ownKeys(load(id)) });
  return (id) => (SELDOM_NEEDED.has(id) ? standIn(id) : load(id));
}
