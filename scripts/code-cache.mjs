// Keeps what V8 makes of a program's code: node FLAGS scripts/code-cache.mjs CODE OUTPUT [ARGUMENT …], in the folder of CODE. A
// process of its own, under the flags that the program will have: V8 takes a cache under no others, and the same code gives the
// same cache only to a process that has done nothing else (with --hash-seed and --predictable).
//
// With arguments the program runs with them: all modules are begun then, so that what every start needs is in the cache, and the
// rest, three times as much, is compiled when it is needed. Without, all functions are in the cache.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';

const [node, , filename, output, ...args] = process.argv;
const program = resolve(filename);
if (args.length === 0) setFlagsFromString('--no-lazy');
const script = new Script(readFileSync(filename, 'latin1'), { filename });
if (args.length === 0) setFlagsFromString('--lazy');
process.on('exit', () => {
  // The program has none.
  setFlagsFromString('--hash-seed=0');
  writeFileSync(output, script.createCachedData());
});
if (args.length > 0) {
  process.argv = [node, program, ...args];
  script.runInThisContext()(createRequire(program), program);
}
