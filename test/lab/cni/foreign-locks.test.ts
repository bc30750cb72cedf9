import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createNamespace, own, removeAll, type TestNamespace } from '../namespace.ts';
import { createNode } from './fixture.ts';
import { holdNetwork } from './lock-holder.ts';
import { createServedNode } from './served-node.ts';

afterEach(removeAll);

const NODE_LOCK = '/run/nodeplane/node.lock';

/** A process without any privilege in the node's namespace locks what it can open; resolves to what it holds. */
async function lockAsNobody(node: TestNamespace, ...paths: string[]): Promise<string[]> {
  // Each is locked by a flock(1) of its own, which tells that it has it, or that it cannot be opened.
  const script = `for path; do (flock -n "$path" sh -c 'echo "held $0"; exec sleep 120' "$path" 2>/dev/null || echo "failed $path") & done; wait`;
  const enter = ['netns', 'exec', node.name, 'setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  const drop = ['--bounding-set=-all', '--inh-caps=-all', '--no-new-privs'];
  const holder = spawn('ip', [...enter, ...drop, 'sh', '-c', script, 'sh', ...paths], {
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  own(() => void process.kill(-holder.pid!, 'SIGKILL'));
  let said = '';
  await new Promise<void>((resolve) => {
    holder.stdout.on('data', (chunk) => {
      said += chunk;
      if (said.split('\n').length > paths.length) resolve();
    });
  });
  return said.split('\n').flatMap((line) => /^held (.*)/.exec(line)?.[1] ?? []);
}

const NAMESPACE = '/proc/self/ns/net';

it('an unprivileged process that locks what it can keeps no pod of the stand-alone plugin waiting', async () => {
  const node = createNode();
  const [first, pod] = [createNamespace('first'), createNamespace('pod')];
  await node.add(first);
  // As on nodes where somebody made them readable; the second network is not used before.
  const network = join(node.dataDir, 'net');
  chmodSync(node.dataDir, 0o755);
  for (const name of ['net', 'other']) mkdirSync(join(node.dataDir, name), { recursive: true, mode: 0o755 });
  writeFileSync(join(node.dataDir, 'other', 'lock'), '', { mode: 0o644 });
  const reachable = [NAMESPACE, '/run/nodeplane', NODE_LOCK, node.dataDir, network, join(network, 'lock')];
  const held = await lockAsNobody(node.namespace, ...reachable);
  expect(held).toEqual(expect.arrayContaining([NAMESPACE, network]));
  expect(held).not.toContain(NODE_LOCK);
  expect(held).not.toContain(join(network, 'lock'));
  const started = performance.now();
  await node.add(pod);
  await node.del(pod);
  await node.add(pod, { config: node.config({ name: 'other' }) });
  await node.del(pod, { config: node.config({ name: 'other' }) });
  await node.del(first);
  // Any of these would have waited ten seconds.
  expect(performance.now() - started).toBeLessThan(9000);
  expect(statSync(join(node.dataDir, 'other', 'lock')).mode & 0o777).toBe(0o600);
});

it('an unprivileged process that locks what it can keeps no pod of the agent waiting', async () => {
  const served = createServedNode();
  await served.startAgent();
  const pod = createNamespace('pod');
  expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
  chmodSync(served.folder, 0o755);
  const files = [served.dataDir, served.spoolDir, served.binDir, served.confDir].flatMap((folder) => [
    folder,
    ...(existsSync(folder) ? readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name))) : []),
  ]);
  const held = await lockAsNobody(served.node.namespace, NAMESPACE, NODE_LOCK, served.socket, ...files);
  expect(held).not.toContain(NODE_LOCK);
  expect(held).not.toContain(join(served.dataDir, 'nodeplane', 'lock'));
  const started = performance.now();
  expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
  expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
  expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
  expect(performance.now() - started).toBeLessThan(9000);
});

it('a lock that root holds is waited for ten seconds, and then its holder is named', { timeout: 60_000 }, async () => {
  const node = createNode();
  const pod = createNamespace('pod');
  await node.add(pod);
  await holdNetwork(join(node.dataDir, 'net'));
  await expect(node.del(pod)).rejects.toThrow(/Waited 10000 ms for the lock .*held by process \d+ \((sh|sleep)\)/);
});
