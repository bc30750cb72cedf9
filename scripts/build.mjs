// Builds dist/: the executables and what they need beside them. Run by `npm run build`, and for the image by deploy/image/build:
// --output FOLDER, --arch ARCH (as Node.js calls it), --no-code-cache.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build, transform } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const options = parseArgs({
  options: {
    output: { type: 'string', default: join(root, 'dist') },
    arch: { type: 'string', default: process.arch },
    'no-code-cache': { type: 'boolean', default: false },
  },
}).values;
// Made in a folder of its own and put in place at the end: programs that run from dist/ meanwhile do not lose it.
const dist = mkdtempSync(`${options.output}.new-`);
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/**
 * What kubernetes_build_info tells, as JSON. The commit's own date: the same commit gives the same files. A string, because
 * esbuild makes a module of an object, and every other module of a bundle begins with a call of it.
 */
const buildFacts = JSON.stringify({ version, ...commitFacts() });

/**
 * V8 lets a heap grow to several times what lives in it before it cleans up. With a small young generation and little
 * growth (src/agent/run.ts) the agent takes 230 MiB at 10,000 Services x 10 endpoints and 289 MiB after 20,000 changes, in place
 * of 263 and 414 (`npm run bench -- memory`). The growth is no flag here: code caches, Node.js's own too, are for the flags they were
 * made under. So src/cli/start/start-program.ts takes this one back when it has had its effect.
 */
const AGENT_FLAGS = '--max-semi-space-size=4';

/** Of what every start of the agent needs: with all functions it would take 4 MiB more. */
const AGENT_CACHE = { args: ['--version'] };
/** Of all functions: the build can neither run an ADD nor ask an agent. */
const FULL_CACHE = {};

/** The module that imports @kubernetes/client-node, and the file of dist/ that it becomes: seldom needed. */
const CLIENT_NODE_USER = 'src/kube/api/client/access/client-node-options.ts';
const CLIENT_NODE_FILE = 'client-node.js';

/** Debian's, by the architecture that they compile for. */
const CROSS_COMPILERS = { arm64: ['aarch64-linux-gnu-gcc'], x64: ['x86_64-linux-gnu-gcc'] };

const MODULE_URL = '"use strict";const __moduleUrl=require("node:url").pathToFileURL(__filename).href;';

/** CommonJS, because it starts faster than ESM and runs from any folder, whatever package.json lies above it. */
async function bundle(entry, output, { executable = true, flags = '', ...options } = {}) {
  const start = executable ? `#!/usr/bin/env ${flags && '-S '}node${flags && ` ${flags}`}\n` : '';
  await build({
    entryPoints: [join(root, entry)],
    outfile: join(dist, output),
    bundle: true,
    platform: 'node',
    target: 'node20.18',
    format: 'cjs',
    minifySyntax: true,
    minifyWhitespace: true,
    keepNames: false,
    legalComments: 'none',
    // @kubernetes/client-node's node-fetch takes URL of it where Node.js has none. It brings punycode, of which Node 24 warns.
    alias: { 'whatwg-url': 'node:url' },
    banner: { js: `${start}${MODULE_URL}` },
    define: { 'import.meta.url': '__moduleUrl', __NODEPLANE_BUILD__: JSON.stringify(buildFacts) },
    logLevel: 'warning',
    ...options,
  });
  if (executable) chmodSync(join(dist, output), 0o755);
}

/**
 * Of the commit that is built, or what the environment says of it, for a build in an image without .git; empty where nobody
 * knows. A source folder inside of somebody else's repository has no commit.
 */
function commitFacts() {
  const { NODEPLANE_COMMIT: given = '', NODEPLANE_COMMIT_DATE: givenDate = '' } = process.env;
  if (given) return { commit: given, date: givenDate, tree: 'clean' };
  const git = (...args) => {
    const { status, stdout } = spawnSync('git', args, {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, TZ: 'UTC' },
    });
    return status === 0 ? stdout.trim() : undefined;
  };
  if (git('rev-parse', '--show-prefix') !== '') return { commit: '', date: '', tree: '' };
  const [commit, date] = git('log', '-1', '--format=%H %cd', '--date=format-local:%Y-%m-%dT%H:%M:%SZ').split(' ');
  return { commit, date, tree: git('status', '--porcelain', '--untracked-files=no') === '' ? 'clean' : 'dirty' };
}

/** Leaves @kubernetes/client-node out of a program, to be loaded by whoever needs it: two fifths of the agent's code. */
const clientNodeBeside = {
  name: 'client-node-beside',
  setup({ onResolve }) {
    onResolve({ filter: /\/client-node-options\.ts$/ }, () => ({ path: `./${CLIENT_NODE_FILE}`, external: true }));
  },
};

/** Says of our modules that nothing happens when they are loaded, so that those nobody uses are left out. */
const withoutSideEffects = {
  name: 'without-side-effects',
  setup({ onResolve, resolve }) {
    onResolve({ filter: /^\./ }, async ({ path, pluginData, ...from }) => {
      if (pluginData === withoutSideEffects) return undefined;
      return { ...(await resolve(path, { ...from, pluginData: withoutSideEffects })), sideEffects: false };
    });
  },
};

/**
 * Of a program that loads nothing later: what only parts that are not in it would import() is none of its modules. esbuild wraps each
 * of those, and all that they import, in a function of its own, a 28th of the program.
 */
const nothingLater = {
  name: 'nothing-later',
  setup({ initialOptions, onResolve, onEnd }) {
    initialOptions.metafile = true;
    onResolve({ filter: /^\./ }, ({ kind, path }) =>
      kind === 'dynamic-import' ? { path, external: true } : undefined,
    );
    onEnd(({ metafile }) => {
      const later = Object.values(metafile?.outputs ?? {}).flatMap(({ imports }) => imports);
      const own = later.filter(({ path }) => path.startsWith('.'));
      return { errors: own.map(({ path }) => ({ text: `This program would have to load ${path} later` })) };
    });
  },
};

/** Local names of the largest library in it are nobody's business: a fiftieth of the program that asks. Ours are for traces of the stack. */
const shortCommander = {
  name: 'short-commander',
  setup({ onLoad }) {
    onLoad({ filter: /\/node_modules\/commander\/lib\/.*\.js$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, 'utf8'), { minifyIdentifiers: true });
      return { contents: code, loader: 'js' };
    });
  },
};

try {
  await buildAll();
} catch (error) {
  rmSync(dist, { recursive: true });
  throw error;
}

async function buildAll() {
  // Of all functions too: for threads that begin while many pods come.
  const threadCache = { flags: await flagsOfAgent() };
  await Promise.all([
    bundle('src/cli/start/nodeplane-start.ts', 'nodeplane', { flags: AGENT_FLAGS }),
    bundleCode('src/cli/main.ts', 'nodeplane', AGENT_CACHE, { plugins: [clientNodeBeside] }),
    bundleCode('src/cli/ask/main.ts', 'nodeplane-ask', FULL_CACHE, {
      plugins: [nothingLater, withoutSideEffects, shortCommander],
    }),
    bundle('src/cli/start/kube-proxy-start.ts', 'kube-proxy', { flags: AGENT_FLAGS }),
    bundleCode('src/cli/kube-proxy.ts', 'kube-proxy', AGENT_CACHE, { plugins: [clientNodeBeside] }),
    bundle(CLIENT_NODE_USER, CLIENT_NODE_FILE, { executable: false }),
    bundle('src/cli/start/cni-start.ts', 'nodeplane-cni'),
    bundleCode('src/cli/cni/cni.ts', 'nodeplane-cni', FULL_CACHE, { plugins: [withoutSideEffects] }),
    bundle('demo/main.ts', 'nodeplane-demo'),
    bundle('bench/main.ts', 'nodeplane-bench'),
    bundle('src/cli/start/cni-worker-start.ts', 'cni-worker.js', { executable: false }),
    bundleCode('src/agent/cni/threads/worker.ts', 'cni-worker.js', threadCache),
    bundle('src/netlink/words/index.ts', 'netlink-words.js', { executable: false }),
    bundle('test/lab/netns-worker.ts', 'netns-worker.js', { executable: false }),
  ]);
  writeFileSync(join(dist, 'package.json'), '{ "type": "commonjs" }\n');
  buildHostPlugin();
  if (options.arch === process.arch) cpSync(koffiNativeFile(), join(dist, 'koffi.node'));
  chmodSync(dist, 0o755);
  rmSync(options.output, { recursive: true, force: true });
  renameSync(dist, options.output);
}

/**
 * The code of a program, as src/cli/start/built-code.ts reads it: a line of 64 bytes with the version of Node.js and the number of
 * bytes of V8's code cache; the cache; the code, which is ASCII. One file, because V8 takes a cache for any code of the same
 * length. A function around the code stands for what Node.js gives a module.
 */
async function bundleCode(entry, program, cached, bundling = {}) {
  const output = `${program}.code`;
  await bundle(entry, output, {
    executable: false,
    banner: { js: `(function(require,__filename){${MODULE_URL}` },
    footer: { js: '})' },
    // V8 knows import() only in code that Node.js loads.
    supported: { 'dynamic-import': false },
    ...bundling,
  });
  const path = join(dist, output);
  const cache = options['no-code-cache'] ? Buffer.alloc(0) : codeCacheOf(output, cached);
  const header = `${process.version} ${cache.length}`.padEnd(63);
  writeFileSync(path, Buffer.concat([Buffer.from(`${header}\n`), cache, readFileSync(path)]));
}

/** What the agent sets when it runs: its threads have those flags too. */
async function flagsOfAgent() {
  const outfile = join(dist, 'v8-flags.mjs');
  await build({ entryPoints: [join(root, 'src/sys/v8-flags.ts')], outfile, format: 'esm' });
  const { agentFlags } = await import(outfile);
  rmSync(outfile);
  return agentFlags();
}

/**
 * What V8 makes of a program's code.
 *
 * @param flags of V8, as the program has them by then
 * @param args what it runs with meanwhile; none: see scripts/code-cache.mjs
 */
function codeCacheOf(name, { flags = [], args = [] }) {
  const script = join(root, 'scripts/code-cache.mjs');
  const output = `${name}.cache`;
  const child = spawnSync(
    process.execPath,
    ['--hash-seed=1', '--predictable', ...flags, script, name, output, ...args],
    { cwd: dist, encoding: 'utf8' },
  );
  if (child.status !== 0) throw new Error(`V8's code cache of ${name} cannot be made: ${child.stderr}`);
  const cache = readFileSync(join(dist, output));
  rmSync(join(dist, output));
  return cache;
}

/**
 * The CNI plugin for the host, which has no Node.js. Static, because nobody knows which C library the host has. With musl, if
 * it is there: a program of it starts in 0.11 ms, one of glibc's static library, which asks the processor for its caches
 * first, in 0.35 ms. Without a C compiler (and the C library's static form) the build goes on without it: everything but
 * `nodeplane agent --cni` works.
 */
function buildHostPlugin() {
  const native = ['musl-gcc', 'cc', 'gcc', 'clang'];
  const compilers = [process.env.CC, ...(options.arch === process.arch ? native : CROSS_COMPILERS[options.arch])];
  const compiler = compilers.find((name) => name && compile(name, 'int main(void) { return 0; }'));
  if (!compiler) {
    console.log('build: no C compiler with a static C library (Debian: gcc, libc6-dev), so no CNI plugin for the host');
    return;
  }
  const source = readFileSync(join(root, 'src/cni/shim/nodeplane-cni.c'), 'utf8');
  if (!compile(compiler, source, 'inherit')) throw new Error('The CNI plugin for the host does not compile');
}

function compile(compiler, source, stderr = 'ignore') {
  const output = join(dist, 'nodeplane-cni-shim');
  const flags = ['-static', '-Os', '-s', '-Wall', '-Wextra', '-Werror', '-x', 'c', '-', '-o', output];
  const { status } = spawnSync(compiler, flags, { input: source, stdio: ['pipe', 'ignore', stderr] });
  if (status !== 0) rmSync(output, { force: true });
  return status === 0;
}

function koffiNativeFile() {
  const require = createRequire(import.meta.url);
  const folder = dirname(require.resolve(`@koromix/koffi-${process.platform}-${process.arch}/package.json`));
  const libc = process.report.getReport().header.glibcVersionRuntime ? 'linux' : 'musl';
  return join(folder, `${libc}_${process.arch}`, 'koffi.node');
}
