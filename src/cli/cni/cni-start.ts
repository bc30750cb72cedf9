import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';

// dist/nodeplane-cni: runs the plugin's code (cni.ts) out of `nodeplane-cni.code` beside it, with what V8 made of it when it was
// built: compiling it for every pod takes a quarter of an ADD. scripts/build.mjs says what the file looks like. Another
// version of Node.js than the one it was built with compiles the code as ever: V8 itself does not see every difference.

const HEADER_BYTES = 64;

const program = fileURLToPath(import.meta.url);
const filename = `${program}.code`;
const file = readCode();
const [builtWith, cacheBytes] = file.toString('latin1', 0, HEADER_BYTES).trimEnd().split(' ');
const codeAt = HEADER_BYTES + Number(cacheBytes);
const cachedData = builtWith === process.version ? file.subarray(HEADER_BYTES, codeAt) : undefined;
const run = new Script(file.toString('latin1', codeAt), { filename, cachedData }).runInThisContext();
run(createRequire(program), program);

function readCode(): Buffer {
  try {
    return readFileSync(filename);
  } catch (error) {
    // An I/O failure of the specification: what the runtime shows is this text.
    const msg = `Cannot read the plugin's code: "${filename}" must lie beside "${program}", as the build puts it there`;
    process.stdout.write(
      `${JSON.stringify({ cniVersion: '1.0.0', code: 5, msg, details: (error as Error).message })}\n`,
    );
    process.exit(1);
  }
}
