import { closeSync, lstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ARCHITECTURES } from './contents.mjs';
import { run } from './run.mjs';

/**
 * Holds every program and library of the layers to the architecture, and to the libraries it is linked with: under emulation
 * a wrong one would go unnoticed, and one that is missing is noticed by whoever loads it, on some node.
 *
 * @throws naming the file
 */
export function checkBinaries(folders, arch) {
  const files = folders.flatMap((folder) => filesBelow(folder));
  const names = new Set(files.map((file) => basename(file)));
  for (const file of files) {
    const machine = elfMachine(file);
    if (machine === undefined) continue;
    if (machine !== ARCHITECTURES[arch].elfMachine) {
      throw new Error(`${file} is for another architecture than ${arch}: e_machine is 0x${machine.toString(16)}`);
    }
    const needed = run('readelf', ['--dynamic', '--wide', file]).matchAll(/\(NEEDED\).*\[(.+)\]/g);
    for (const [, library] of needed)
      if (!names.has(library)) throw new Error(`${file} needs ${library}, which is not in the image`);
  }
}

/** e_machine of an ELF file (elf(5)); undefined for any other file. */
function elfMachine(file) {
  if (!lstatSync(file).isFile()) return undefined;
  const header = Buffer.alloc(20);
  const descriptor = openSync(file, 'r');
  try {
    const read = readSync(descriptor, header);
    return read === 20 && header.toString('latin1', 0, 4) === '\x7fELF' ? header.readUInt16LE(18) : undefined;
  } finally {
    closeSync(descriptor);
  }
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}
