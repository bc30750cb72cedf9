import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ARCHITECTURES, LINKS, NODE, PROGRAMS } from './contents.mjs';
import { link } from './debian.mjs';
import { run } from './run.mjs';

/**
 * Puts Node.js into a folder.
 *
 * @returns what the list of contents says of it, and the `program`
 */
export function nodeLayer(folder, { arch, cache }) {
  const name = `node-linux-${ARCHITECTURES[arch].node}`;
  const { version, integrity } = NODE;
  const archive = fetchPackage(name, version, integrity[arch], cache);
  mkdirSync(join(folder, 'usr/local/share/doc/node'), { recursive: true });
  mkdirSync(join(folder, 'usr/local/bin'), { recursive: true });
  const program = join(folder, 'usr/local/bin/node');
  extract(archive, 'package/bin/node', program);
  extract(archive, 'package/LICENSE', join(folder, 'usr/local/share/doc/node/LICENSE'));
  chmodSync(program, 0o755);
  return { ...npmPackage(name, version, archive), program };
}

/**
 * Builds this source tree for an architecture and puts its programs into a folder.
 *
 * @returns what the list of contents says of it and of the libraries in it
 */
export function nodeplaneLayer(folder, { arch, root, cache, work, node, facts }) {
  const { node: cpu } = ARCHITECTURES[arch];
  const isNative = cpu === process.arch;
  const dist = join(work, 'dist');
  // V8's code cache is of use to the Node.js that made it; of another architecture's nobody can make one here.
  const args = [
    join(root, 'scripts/build.mjs'),
    '--output',
    dist,
    '--arch',
    cpu,
    ...(isNative ? [] : ['--no-code-cache']),
  ];
  run(isNative ? node.program : process.execPath, args, {
    env: { ...process.env, NODEPLANE_COMMIT: facts.commit, NODEPLANE_COMMIT_DATE: facts.created },
  });
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  const koffi = `@koromix/koffi-linux-${cpu}`;
  const { version, integrity } = lock[`node_modules/${koffi}`];
  extract(fetchPackage(koffi, version, integrity, cache), `package/linux_${cpu}/koffi.node`, join(dist, 'koffi.node'));
  const home = join(folder, 'usr/local/lib/nodeplane');
  mkdirSync(home, { recursive: true });
  for (const name of PROGRAMS) {
    if (!existsSync(join(dist, name)))
      throw new Error(
        `The build made no ${name}: for ${arch} it needs a C compiler with a static C library (Debian: musl-tools; gcc-aarch64-linux-gnu for arm64)`,
      );
    copyFileSync(join(dist, name), join(home, name));
  }
  link(folder, LINKS.nodeplane);
  const own = {
    name: 'nodeplane',
    version: facts.version,
    license: facts.license,
    purl: `pkg:generic/nodeplane@${facts.version}?vcs_revision=${facts.commit}`,
  };
  return [own, ...bundledPackages(lock, koffi)];
}

/** The npm packages that are bundled: those that package.json names as dependencies, and theirs. */
function bundledPackages(lock, koffi) {
  return Object.entries(lock)
    .filter(([path, { dev, optional }]) => path !== '' && !dev && (!optional || path === `node_modules/${koffi}`))
    .map(([path, { version, license, integrity }]) => {
      const name = path.replace(/^.*node_modules\//, '');
      const [, digest] = /^sha512-(.+)$/.exec(integrity ?? '') ?? [];
      return {
        name,
        version,
        license,
        purl: purlOf(name, version),
        sha512: digest && Buffer.from(digest, 'base64').toString('hex'),
      };
    });
}

/** The archive of an npm package, verified. */
function fetchPackage(name, version, integrity, cache) {
  const file = join(cache, `${name.replace(/[@/]/g, '_')}-${version}.tgz`);
  if (!existsSync(file)) {
    mkdirSync(cache, { recursive: true });
    const folder = join(cache, `fetch-${process.pid}`);
    mkdirSync(folder);
    try {
      const printed = run('npm', ['pack', '--silent', '--pack-destination', folder, `${name}@${version}`]);
      renameSync(join(folder, printed.trim().split('\n').at(-1)), file);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
  const found = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`;
  if (found === integrity) return file;
  rmSync(file);
  throw new Error(`${name} ${version}: its checksum is ${found}, not ${integrity}; it was not used`);
}

function extract(archive, path, target) {
  run('sh', ['-c', 'tar --extract --to-stdout --file "$1" "$2" >"$3"', 'sh', archive, path, target]);
}

function npmPackage(name, version, archive) {
  const sha512 = createHash('sha512').update(readFileSync(archive)).digest('hex');
  return { name, version, sha512, purl: purlOf(name, version), license: 'MIT' };
}

function purlOf(name, version) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}
