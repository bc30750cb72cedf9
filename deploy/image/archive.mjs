import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, statSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { run } from './run.mjs';

/**
 * Packs a folder so that the same files give the same bytes: sorted, of one date, owned by root.
 *
 * @param epoch seconds since 1970
 */
export function pack(archive, folder, epoch, names = ['.']) {
  const same = ['--sort=name', `--mtime=@${epoch}`, '--owner=0', '--group=0', '--numeric-owner', '--format=gnu'];
  run('tar', ['--create', ...same, '--mode=go-w', '--file', archive, '--directory', folder, ...names]);
}

/** @returns the layer's compressed file, with what the image's configuration and manifest say of it */
export async function makeLayer(name, folder, { work, epoch }) {
  const archive = join(work, `${name}.tar`);
  const file = `${archive}.gz`;
  pack(archive, folder, epoch);
  await pipeline(createReadStream(archive), createGzip({ level: 9 }), createWriteStream(file));
  const bytes = statSync(archive).size;
  const [diffId, digest] = await Promise.all([digestOf(archive), digestOf(file)]);
  return { name, file, bytes, compressedBytes: statSync(file).size, diffId, digest };
}

/** `sha256:` and 64 hexadecimal digits. */
async function digestOf(file) {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return `sha256:${hash.digest('hex')}`;
}
