import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { repositoryFile } from '../lab/programs.ts';

/** Busybox alone. Used for pods' sandboxes and for containers. */
export const IMAGE = 'nodeplane.test/busybox:1';

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
const BUSYBOX = repositoryFile('.cache/busybox-static/bin/busybox');

/**
 * Makes the image as an archive that `ctr images import` and `podman load` read (the form of `docker save`): nothing is
 * pulled. Its command sleeps, as a pause container does.
 *
 * @returns the archive's path, in `folder`
 */
export function createImageArchive(folder: string): string {
  const files = join(folder, 'image');
  mkdirSync(join(files, 'root/bin'), { recursive: true });
  copyFileSync(BUSYBOX, join(files, 'root/bin/busybox'));
  pack(join(files, 'layer.tar'), join(files, 'root'), ['bin']);
  const digest = createHash('sha256')
    .update(readFileSync(join(files, 'layer.tar')))
    .digest('hex');
  const config = {
    architecture: ARCHITECTURES[process.arch] ?? process.arch,
    os: 'linux',
    config: { Cmd: ['/bin/busybox', 'sleep', '1000000'], Env: ['PATH=/bin'] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  };
  const manifest = [{ Config: 'config.json', RepoTags: [IMAGE], Layers: ['layer.tar'] }];
  writeFileSync(join(files, 'config.json'), JSON.stringify(config));
  writeFileSync(join(files, 'manifest.json'), JSON.stringify(manifest));
  const archive = join(folder, 'image.tar');
  pack(archive, files, ['manifest.json', 'config.json', 'layer.tar']);
  return archive;
}

function pack(archive: string, folder: string, names: readonly string[]): void {
  execFileSync('tar', ['--create', '--owner=0', '--group=0', '--file', archive, '--directory', folder, ...names]);
}
