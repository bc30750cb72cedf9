// deploy/image/build: makes the image without Docker. See docs/install.md.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeLayer } from './archive.mjs';
import { ARCHITECTURES } from './contents.mjs';
import { debianLayer } from './debian.mjs';
import { checkBinaries } from './elf.mjs';
import { writeImage } from './oci.mjs';
import { nodeLayer, nodeplaneLayer } from './programs.mjs';
import { sourceFacts } from './run.mjs';
import { describe } from './sbom.mjs';

const HELP = `Usage: deploy/image/build [--arch ARCH[,ARCH]] [--name REFERENCE] [--output FILE]

Makes the image of nodeplane out of Debian 12's packages, Node.js of the npm registry, and this source tree: one tar file
that \`ctr images import\`, \`podman load\` and \`docker load\` read. The same commit and the same packages give the same bytes. Needs
Debian 12, as root is not needed; for an architecture other than this machine's also the package gcc-aarch64-linux-gnu.

  --arch ARCH        amd64, arm64, or both with a comma between (default: this machine's)
  --name REFERENCE   the image's full name (default: registry.example/nodeplane/nodeplane:VERSION)
  --output FILE      (default: nodeplane-VERSION.tar); beside it FILE.ARCH.spdx.json says what is inside
`;

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

try {
  await main();
} catch (error) {
  process.stderr.write(`deploy/image/build: ${error.message}\n`);
  process.exitCode = 1;
}

async function main() {
  const options = {
    arch: { type: 'string' },
    name: { type: 'string' },
    output: { type: 'string' },
    help: { type: 'boolean' },
  };
  const { values } = parseArgs({ options });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const facts = sourceFacts(root);
  const { version } = facts;
  const name = values.name ?? `registry.example/nodeplane/nodeplane:${version}`;
  if (!/^[a-z0-9.-]+(:\d+)?(\/[a-z0-9._-]+)+:[\w.-]{1,128}$/.test(name)) {
    throw new Error(
      `--name ${name}: it must be a full name with registry and tag, such as registry.example/nodeplane/nodeplane:${version}`,
    );
  }
  const output = resolve(values.output ?? `nodeplane-${version}.tar`);
  if (!existsSync(dirname(output))) throw new Error(`--output ${output}: there is no folder ${dirname(output)}`);
  const cache = join(root, '.cache/image');
  const work = join(cache, `work-${process.pid}`);
  try {
    const images = [];
    for (const arch of (values.arch ?? thisArchitecture()).split(',')) {
      if (!(arch in ARCHITECTURES))
        throw new Error(`--arch ${arch}: it must be ${Object.keys(ARCHITECTURES).join(' or ')}`);
      images.push(await buildFor(arch, { root, cache, work: join(work, arch), facts }));
    }
    const partial = `${output}.partial`;
    writeImage(partial, { work, images, name, facts });
    renameSync(partial, output);
    for (const { arch, sbom } of images)
      writeFileSync(`${output}.${arch}.spdx.json`, `${JSON.stringify(sbom, undefined, 2)}\n`);
    const sizes = images.map(({ arch, layers }) => {
      const sum = (key) => (layers.reduce((total, layer) => total + layer[key], 0) / 1e6).toFixed(1);
      return `${arch}: ${sum('compressedBytes')} MB compressed, ${sum('bytes')} MB uncompressed\n`;
    });
    process.stdout.write(`${sizes.join('')}${name} is in ${output}\n`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The three layers of one architecture, and what they are made of. */
async function buildFor(arch, { root, cache, work, facts }) {
  const folders = Object.fromEntries(['debian', 'node', 'nodeplane'].map((layer) => [layer, join(work, layer)]));
  for (const folder of Object.values(folders)) mkdirSync(folder, { recursive: true });
  const packages = debianLayer(folders.debian, { arch, root, cache });
  const node = nodeLayer(folders.node, { arch, cache });
  const own = nodeplaneLayer(folders.nodeplane, { arch, root, cache, work, node, facts });
  checkBinaries(Object.values(folders), arch);
  const layers = [];
  for (const [layer, folder] of Object.entries(folders))
    layers.push(await makeLayer(layer, folder, { work, epoch: facts.epoch }));
  const sbom = describe({ arch, facts, packages: [...packages, node, ...own], layers });
  return { arch, layers, sbom };
}

function thisArchitecture() {
  const found = Object.entries(ARCHITECTURES).find(([, { node }]) => node === process.arch);
  if (!found) throw new Error(`this machine's architecture is ${process.arch}: name one with --arch`);
  return found[0];
}
