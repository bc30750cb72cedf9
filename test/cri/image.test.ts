import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { V1DaemonSet, V1PodSpec } from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { enterNetns } from '../../src/sys/index.ts';
import { apiNode, apiService, apiSlice, FakeApiServer } from '../fakes/api-server/index.ts';
import type { Host } from '../lab/host.ts';
import { createLab, removeAll } from '../lab/lab.ts';
import { type Containerd, startContainerd } from './containerd.ts';
import { runManifestPod, type Surroundings } from './manifest-pod.ts';
import { runPod } from './pod.ts';
import { createPodman, podmanObjection } from './podman.ts';

// The image as deploy/image/build makes it, run by containerd as the manifests of deploy/ say.

const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url));
const lab = createLab();
const node = lab.addNode({ name: 'node-1' });
const web = node.addPod('web');
const client = node.addPod('client');
const SERVICE = { ip: '10.96.0.10', port: 80 };
const run = promisify(execFile);
let containerd: Containerd;
let api: FakeApiServer;
let surroundings: Surroundings;

interface Built {
  readonly name: string;
  readonly file: string;
  /** What the command printed. */
  readonly said: string;
}

async function build(tag: string, file: string, env: NodeJS.ProcessEnv = {}): Promise<Built> {
  const [name, path] = [`registry.test/nodeplane/nodeplane:${tag}`, join(lab.folder, file)];
  const args = ['--name', name, '--output', path];
  const { stdout } = await run(join(DEPLOY, 'image/build'), args, { env: { ...process.env, ...env } });
  return { name, file: path, said: stdout };
}

const manifest = (file: string) => parse(readFileSync(join(DEPLOY, file), 'utf8'));
const podSpecOf = (file: string) => (manifest(file) as V1DaemonSet).spec!.template.spec!;
const digest = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');
const answers = async (from: Host) => {
  const outcome = await from.connect(SERVICE);
  return outcome.kind === 'answered' ? outcome.by : outcome.kind;
};
const get = async (path: string, port: number) => (await node.httpGet(`http://127.0.0.1:${port}${path}`)).body;

let [first, again, second]: Built[] = [];

beforeAll(async () => {
  first = await build('1', 'first.tar');
  again = await build('1', 'again.tar');
  second = await build('2', 'second.tar', { NODEPLANE_COMMIT: 'f'.repeat(40) });
  containerd = await startContainerd(node);
  for (const { file } of [first, second]) containerd.importImage(file);
  await web.serve({ port: 8080 });
  // From here on this thread lives in the node's namespace, and so does the API server it runs.
  enterNetns(node.namespace.path);
  api = new FakeApiServer();
  await api.start();
  api.misbehave.tokens = new Set(['secret']);
  api.misbehave.rules = parseAllDocuments(readFileSync(join(DEPLOY, 'base/rbac.yaml'), 'utf8'))
    .map((document) => document.toJS())
    .find(({ kind }) => kind === 'ClusterRole').rules;
  const { podCidrs } = node;
  const spec = { podCIDR: podCidrs[0], podCIDRs: podCidrs };
  api.apply({ ...apiNode('node-1', node.ip()), spec }, apiService('demo/web'), apiSlice('demo/web', [web.ip()]));
  const [configMap, serviceAccount] = [join(lab.folder, 'config-map'), join(lab.folder, 'service-account')];
  for (const folder of [configMap, serviceAccount]) mkdirSync(folder);
  writeFileSync(join(serviceAccount, 'token'), 'secret');
  writeFileSync(join(serviceAccount, 'ca.crt'), api.ca);
  for (const [name, text] of Object.entries<string>(manifest('base/configmap.yaml').data)) {
    writeFileSync(join(configMap, name), text.replace('https://CONTROL_PLANE_ENDPOINT:6443', api.url));
  }
  surroundings = {
    image: first.name,
    nodeName: 'node-1',
    configMaps: { 'kube-proxy': configMap },
    serviceAccount,
    hostPaths: { '/opt/cni/bin': containerd.cniBinDir, '/etc/cni/net.d': containerd.cniConfigDir },
  };
}, 600_000);
afterAll(async () => {
  await api?.stop();
  removeAll();
});

it('is as small as it is said to be, and has the same bytes when it is built again', () => {
  const [, compressed, uncompressed] = /: ([\d.]+) MB compressed, ([\d.]+) MB uncompressed/.exec(first!.said) ?? [];
  expect(Number(compressed)).toBeLessThan(60);
  expect(Number(uncompressed)).toBeLessThan(160);
  expect(statSync(first!.file).size / 1e6).toBeCloseTo(Number(compressed), 0);
  expect(digest(again!.file)).toBe(digest(first!.file));
  expect(digest(second!.file)).not.toBe(digest(first!.file));
});

it.skipIf(podmanObjection())('is read and run by podman, too', async () => {
  const podman = await createPodman(node);
  podman.load(first!.file);
  const said = podman.run(
    'run',
    '--rm',
    '--network',
    'none',
    '--cgroup-parent',
    `/${podman.enclosure.cgroup}`,
    first!.name,
    'nodeplane',
    '--version',
  );
  expect(said.trim()).toBe(JSON.parse(readFileSync(join(DEPLOY, '../package.json'), 'utf8')).version);
});

it('takes kube-proxy’s place; no connection fails while another build takes over', async () => {
  const spec = podSpecOf('daemonset/daemonset.yaml');
  const pod = await runManifestPod(containerd, 'proxy-1', spec, surroundings);
  await expect.poll(() => answers(client)).toBe('web');
  await expect.poll(() => get('/livez', 10256)).toContain('"healthy":true');
  expect(await get('/metrics', 10249)).toMatch(/^kubernetes_build_info{.*git_commit="[0-9a-f]{40}"/m);
  const outcomes = new Set<string | undefined>();
  let isOver = false;
  const load = (async () => {
    while (!isOver) outcomes.add(await answers(client));
  })();
  await pod.remove();
  const next = await runManifestPod(containerd, 'proxy-2', spec, { ...surroundings, image: second!.name });
  await expect.poll(() => get('/metrics', 10249).catch(String)).toContain(`git_commit="${'f'.repeat(40)}"`);
  isOver = true;
  await load;
  expect([...outcomes]).toEqual(['web']);
  await next.remove();
  for (const { logs } of [pod, next]) {
    expect(logs().filter((line) => !/^\S+ INFO/.test(line))).toEqual([]);
  }
});

it('gives the node’s runtime its plugin and pods their network', async () => {
  for (const pod of [web, client]) await pod.remove();
  const [spec, patch] = [podSpecOf('daemonset/daemonset.yaml'), podSpecOf('agent/daemonset-patch.yaml')];
  const pod = await runManifestPod(containerd, 'agent', patched(spec, patch), surroundings);
  await containerd.networkReady();
  const [server, asking] = [await runPod(containerd, 'server'), await runPod(containerd, 'asking')];
  await server.serve({ port: 8080 });
  api.apply(apiSlice('demo/web', [server.ips[0]!]));
  await expect.poll(() => answers(asking)).toBe('server');
  for (const ended of [asking, server, pod]) await ended.remove();
  expect(pod.logs().filter((line) => !/^\S+ INFO/.test(line))).toEqual([]);
});

/** As kustomize merges: lists of named things by their names, everything else is replaced. */
function patched(spec: V1PodSpec, patch: V1PodSpec): V1PodSpec {
  const [container, change] = [spec.containers[0]!, patch.containers[0]!];
  const volumeMounts = [...(container.volumeMounts ?? []), ...(change.volumeMounts ?? [])];
  const volumes = [...(spec.volumes ?? []), ...(patch.volumes ?? [])];
  return { ...spec, containers: [{ ...container, ...change, volumeMounts }], volumes };
}
