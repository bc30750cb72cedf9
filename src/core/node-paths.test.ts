import { readFileSync } from 'node:fs';
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
  const [patch] = parseAllDocuments(read('deploy/components/network/daemonset-patch.yaml'));
  const { containers, volumes } = patch!.toJS().spec.template.spec;
  const hostPaths = new Map<string, string>(
    volumes.flatMap(({ name, hostPath }: { name: string; hostPath?: { path: string } }) =>
      hostPath ? [[name, hostPath.path]] : [],
    ),
  );
  const same = containers[0].volumeMounts.filter(
    ({ name, mountPath }: { name: string; mountPath: string }) => hostPaths.get(name) === mountPath,
  );
  const folders = same.map(({ mountPath }: { mountPath: string }) => mountPath);
  const uncovered = Object.values(NODE_PATHS).filter(
    (path) => !folders.some((folder: string) => path === folder || path.startsWith(`${folder}/`)),
  );
  expect(uncovered).toEqual([]);
});
