import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { enterNetns } from '../../src/sys/index.ts';
import { daemonSetOf, grantedBy, type Rendered, render, renderSwap, SYSTEM_NODE_PROXIER } from '../deploy/render.ts';
import { apiNode, apiService, apiSlice, FakeApiServer } from '../fakes/api-server/index.ts';
import type { Host } from '../lab/host.ts';
import { createLab, removeAll } from '../lab/lab.ts';
import { type Containerd, startContainerd } from './containerd.ts';
import { type ManifestPod, runManifestPod, type Surroundings } from './manifest-pod.ts';
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
/** Those that run. */
const running = new Set<ManifestPod>();

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
  const { podCidrs } = node;
  const spec = { podCIDR: podCidrs[0], podCIDRs: podCidrs };
  api.apply({ ...apiNode('node-1', node.ip()), spec }, apiService('demo/web'), apiSlice('demo/web', [web.ip()]));
  const serviceAccount = join(lab.folder, 'service-account');
  mkdirSync(serviceAccount);
  writeFileSync(join(serviceAccount, 'token'), 'secret');
  writeFileSync(join(serviceAccount, 'ca.crt'), api.ca);
  surroundings = {
    image: first.name,
    nodeName: 'node-1',
    configMaps: {},
    serviceAccount,
    hostPaths: { '/opt/cni/bin': containerd.cniBinDir, '/etc/cni/net.d': containerd.cniConfigDir },
  };
}, 600_000);
// What a failed test left would answer in the next one.
afterEach(async () => {
  for (const pod of running) await end(pod);
});
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

/** Runs what an overlay renders, as a kubelet would: with its ConfigMap and with no more rights than its roles give. */
async function runOverlay(name: string, objects: readonly Rendered[], image = first!.name): Promise<ManifestPod> {
  api.misbehave.rules = [...SYSTEM_NODE_PROXIER, ...grantedBy(objects)];
  const configMaps = objects.flatMap(({ kind, metadata, data }) => {
    if (kind !== 'ConfigMap') return [];
    const folder = join(lab.folder, metadata.name);
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries<string>(data)) {
      writeFileSync(join(folder, file), text.replace('https://CONTROL_PLANE_ENDPOINT:6443', api.url));
    }
    return [[metadata.name, folder]];
  });
  const spec = daemonSetOf(objects).spec!.template.spec!;
  const those = { ...surroundings, image, configMaps: Object.fromEntries(configMaps) };
  const pod = await runManifestPod(containerd, name, spec, those);
  running.add(pod);
  return pod;
}

async function end(pod: ManifestPod): Promise<void> {
  running.delete(pod);
  await pod.remove();
}

const notable = ({ logs }: ManifestPod) => logs().filter((line) => !/^\S+ INFO/.test(line));

it('takes kube-proxy’s place; no connection fails while another build takes over', async () => {
  const pod = await runOverlay('proxy-1', render('overlays/proxy/iptables'));
  await expect.poll(() => answers(client)).toBe('web');
  await expect.poll(() => get('/livez', 10256)).toContain('"healthy":true');
  expect(await get('/metrics', 10249)).toMatch(/^kubernetes_build_info{.*git_commit="[0-9a-f]{40}"/m);
  const outcomes = new Set<string | undefined>();
  let isOver = false;
  const load = (async () => {
    while (!isOver) outcomes.add(await answers(client));
  })();
  await end(pod);
  const next = await runOverlay('proxy-2', render('overlays/proxy/iptables'), second!.name);
  await expect.poll(() => get('/metrics', 10249).catch(String)).toContain(`git_commit="${'f'.repeat(40)}"`);
  isOver = true;
  await load;
  expect([...outcomes]).toEqual(['web']);
  await end(next);
  for (const one of [pod, next]) expect(notable(one)).toEqual([]);
});

it('has no privileges: what it was not given is refused', async () => {
  const pod = await runOverlay('bounds', render('overlays/proxy/nftables'));
  await expect.poll(() => answers(client)).toBe('web');
  const attempt = (code: string) => pod.run('/usr/local/bin/node', '-e', code);
  const status = await attempt("process.stdout.write(require('fs').readFileSync('/proc/self/status', 'utf8'))");
  // NET_ADMIN and NET_RAW; no new ones by a program; a filter for system calls.
  expect(status.output).toMatch(/^CapBnd:\t0000000000003000$/m);
  expect(status.output).toMatch(/^NoNewPrivs:\t1$/m);
  expect(status.output).toMatch(/^Seccomp:\t2$/m);
  const write = (path: string) => attempt(`require('fs').writeFileSync('${path}', '1')`);
  expect((await write('/proc/sys/net/ipv4/ip_forward')).output).toContain('EROFS');
  expect((await write('/usr/local/bin/other')).output).toContain('EROFS');
  expect((await write('/var/lib/kube-proxy/config.conf')).output).toContain('EROFS');
  expect((await write('/tmp/file')).exitCode).toBe(0);
  await end(pod);
  expect(notable(pod)).toEqual([]);
});

it('swapped into kubeadm’s DaemonSet it keeps that one’s configuration, and has no privileges either', async () => {
  const pod = await runOverlay('swapped', renderSwap());
  await expect.poll(() => get('/proxyMode', 10249).catch(String)).toBe('iptables');
  await expect.poll(() => get('/livez', 10256).catch(String)).toContain('"healthy":true');
  expect(await answers(client)).toBe('web');
  await end(pod);
  expect(notable(pod)).toEqual([]);
});

it('leaves the node to a kube-proxy that is back', async () => {
  const run = (...words: string[]) => node.namespace.run(words[0]!, ...words.slice(1));
  const legacy = (...words: string[]) => {
    for (const program of ['iptables-legacy', 'ip6tables-legacy']) run(program, '-t', 'nat', ...words);
  };
  legacy('-N', 'KUBE-SERVICES');
  legacy('-A', 'KUBE-SERVICES', '-j', 'RETURN');
  run('nft', 'add', 'table', 'ip', 'nodeplane');
  const pod = await runOverlay('way-back', render('overlays/way-back'));
  expect(pod.logs()).toContain('nftables IPv4: nothing is left that kube-proxy does not know');
  expect(run('nft', 'list', 'tables')).not.toMatch(/nodeplane$/m);
  legacy('-F', 'KUBE-SERVICES');
  legacy('-X', 'KUBE-SERVICES');
  await end(pod);
});

it('gives the node’s runtime its plugin and pods their network', async () => {
  for (const pod of [web, client]) await pod.remove();
  const pod = await runOverlay('agent', render('overlays/full/nftables'));
  await containerd.networkReady();
  const [server, asking] = [await runPod(containerd, 'server'), await runPod(containerd, 'asking')];
  await server.serve({ port: 8080 });
  api.apply(apiSlice('demo/web', [server.ips[0]!]));
  await expect.poll(() => answers(asking)).toBe('server');
  expect(await get('/metrics', 10249)).toMatch(/^nodeplane_cni_requests_total{verb="ADD",code="0"} 2$/m);
  for (const ended of [asking, server]) await ended.remove();
  await end(pod);
  expect(notable(pod)).toEqual([]);
});
