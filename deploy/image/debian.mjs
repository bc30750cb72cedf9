import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DEBIAN_PACKAGES, LINKS } from './contents.mjs';
import { run } from './run.mjs';

/**
 * Fills a folder with the files that are taken of Debian's packages.
 *
 * @returns the packages, for the list of contents
 */
export function debianLayer(folder, { arch, root, cache }) {
  const codename = /^VERSION_CODENAME=(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  if (codename !== 'bookworm') {
    throw new Error(
      `the image is made of Debian 12's packages, and this machine's are of ${codename ?? 'another system'}: build it on Debian 12`,
    );
  }
  for (const path of [
    'usr/bin',
    'usr/sbin',
    'usr/lib',
    'usr/lib64',
    'etc',
    'tmp',
    'root',
    'run',
    'var/lib/dpkg/status.d',
  ]) {
    mkdirSync(join(folder, path), { recursive: true });
  }
  link(folder, LINKS.debian, (path) => !path.includes('/'));
  writeFileSync(
    join(folder, 'etc/passwd'),
    'root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n',
  );
  writeFileSync(join(folder, 'etc/group'), 'root:x:0:\nnogroup:x:65534:\n');
  writeFileSync(join(folder, 'etc/nsswitch.conf'), 'hosts: files dns\nprotocols: files\nservices: files\n');
  const debs = download(Object.keys(DEBIAN_PACKAGES), { arch, root, cache });
  const packages = debs.map((deb) => unpack(deb, folder));
  link(folder, LINKS.debian, (path) => path.includes('/'));
  return packages;
}

/** Makes symbolic links from a folder's root; one of Debian's own goes. */
export function link(folder, links, wanted = () => true) {
  for (const [path, target] of Object.entries(links).filter(([path]) => wanted(path))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    rmSync(join(folder, path), { force: true });
    symlinkSync(target, join(folder, path));
  }
}

/** The packages' files, in the order of their names. apt verifies them; its lists for the image are kept apart from the machine's. */
function download(names, { arch, root, cache }) {
  const debs = join(cache, `debs-${arch}`);
  const lists = join(cache, `lists-${arch}`);
  for (const path of [debs, join(lists, 'partial')]) mkdirSync(path, { recursive: true });
  const settings = {
    'APT::Architecture': arch,
    'APT::Architectures': arch,
    'Dir::State::lists': lists,
    'Dir::Cache': cache,
    // Of another architecture nothing is installed here.
    'Dir::State::status': '/dev/null',
    'APT::Sandbox::User': 'root',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  const apt = (...args) => run(join(root, 'scripts/apt-get'), [...options, ...args], { cwd: debs });
  const fileOf = (name) => readdirSync(debs).find((file) => file.startsWith(`${name}_`));
  if (names.some((name) => fileOf(name) === undefined)) {
    apt('update');
    for (const file of readdirSync(debs)) rmSync(join(debs, file));
    apt('download', ...names);
  }
  return [...names].sort().map((name) => join(debs, fileOf(name)));
}

/** @returns what the list of contents says of the package */
function unpack(deb, folder) {
  const [name, version, architecture] = ['Package', 'Version', 'Architecture'].map((field) =>
    run('dpkg-deb', ['--field', deb, field]).trim(),
  );
  const listing = run('dpkg-deb', ['--contents', deb]);
  const isThere = (pattern) => matches(listing, pattern);
  const files = DEBIAN_PACKAGES[name].filter(isThere);
  // Some libraries lie in /lib or /usr/lib, depending on the architecture; one of the patterns has to fit.
  if (files.length === 0 && DEBIAN_PACKAGES[name].length > 0) {
    throw new Error(`${name} ${version} has no file of ${DEBIAN_PACKAGES[name].join(', ')}`);
  }
  // The folder may be a link to that of another package.
  const copyright = ['/copyright', ''].map((file) => `./usr/share/doc/${name}${file}`).find(isThere);
  const options = ['--extract', '--keep-directory-symlink', '--no-same-owner', '--wildcards', '--directory', folder];
  run('sh', ['-c', 'dpkg-deb --fsys-tarfile "$1" | { shift; tar "$@"; }', 'sh', deb, ...options, ...files, copyright]);
  // As distroless images have it: scanners look here for what is installed.
  writeFileSync(join(folder, 'var/lib/dpkg/status.d', name), run('dpkg-deb', ['--field', deb]));
  const sha256 = createHash('sha256').update(readFileSync(deb)).digest('hex');
  return {
    name,
    version,
    sha256,
    purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}&distro=bookworm`,
    supplier: 'Debian',
  };
}

/** Whether a listing of dpkg-deb has a file that a pattern of tar fits; `*` passes slashes. */
function matches(listing, pattern) {
  const text = pattern.replace(/[.+]/g, '\\$&').replaceAll('*', '.*');
  return new RegExp(` ${text}(/|$| ->)`, 'm').test(listing);
}
