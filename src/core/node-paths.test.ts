import { readFileSync } from 'node:fs';
import type { V1PodSpec } from '@kubernetes/client-node';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { NODE_PATHS } from './node-paths.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

it('names the paths the plugin in C has', () => {
  const defined = Object.fromEntries(
    [...read('src/cni/shim/nodeplane-cni.c').matchAll(/^#define (\w+) "(\/[^"]*)"/gm)].map(([, name, path]) => [
      name,
      path,
    ]),
  );
  expect(defined).toEqual({ SOCKET_PATH: NODE_PATHS.cniSocket, SPOOL_DIR: NODE_PATHS.cniSpoolDir });
});

it('names paths in the folders of the host that the DaemonSet mounts', () => {
  const mounted = ['deploy/base/daemonset.yaml', 'deploy/components/network/daemonset-patch.yaml'].flatMap((file) => {
    const [daemonSet] = parseAllDocuments(read(file));
    const { containers, volumes } = daemonSet!.toJS().spec.template.spec as V1PodSpec;
    const hostPaths = new Map(volumes!.map(({ name, hostPath }) => [name, hostPath?.path]));
    return containers[0]!.volumeMounts!.filter(({ name, mountPath }) => hostPaths.get(name) === mountPath);
  });
  const folders = mounted.map(({ mountPath }) => mountPath);
  const uncovered = Object.values(NODE_PATHS).filter(
    (path) => !folders.some((folder) => path === folder || path.startsWith(`${folder}/`)),
  );
  expect(uncovered).toEqual([]);
});
