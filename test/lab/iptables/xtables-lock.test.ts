import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import { makeService } from '../../fakes/service-objects.ts';
import { manifestOf, saveManifest } from '../../samples/manifests.ts';
import { createServedNode } from '../cni/served-node.ts';
import { type Agent, type AgentOptions, removeAll } from '../lab.ts';
import { createNamespace, own } from '../namespace.ts';

// Somebody else holds the lock of iptables-legacy, or iptables does not work: what the agent does meanwhile.

const served = createServedNode();
const { node, folder } = served;
const logFile = join(folder, 'agent-node-1.log');
const lockFile = join(folder, 'xtables.lock');
const legacy = ['--iptables-variant', 'legacy'];
let agent: Agent | undefined;
let release: () => void = () => {};

afterEach(async () => {
  release();
  await agent?.stop();
  agent = undefined;
});
afterAll(removeAll);

/** Holds the lock as a stuck iptables would, until `release` is called. */
async function holdLock() {
  const holder = spawn('flock', ['--no-fork', lockFile, 'sh', '-c', 'echo held; exec sleep 600'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  release = own(() => void holder.kill('SIGKILL'));
  await new Promise((resolve) => holder.stdout.once('data', resolve));
  return holder.pid;
}

const page = async (path: string) => (await node.httpGet(`http://127.0.0.1:10256${path}`)).status;
const holdsServices = (family: 'IPv4' | 'IPv6') => node.iptablesSave('legacy', family).includes(':KUBE-SERVICES');

/** Starts the agent; what it then logs about an error of `code`. */
async function start(options: AgentOptions) {
  // Agents of one node share a file.
  let before = 0;
  agent = undefined;
  try {
    before = readFileSync(logFile, 'utf8').split('\n').filter(Boolean).length;
  } catch {
    // The first one.
  }
  agent = await served.startAgent(options);
  const { logs } = agent;
  const codeOf = (err: unknown) => (err as { code?: string } | undefined)?.code;
  return {
    told: (code: string) =>
      logs()
        .slice(before)
        .filter(({ err }) => codeOf(err) === code),
  };
}

it('a lock held at the start delays both families and the pods’ network in nothing', async () => {
  const pid = await holdLock();
  const { told } = await start({ until: 'live', flags: legacy });
  const pod = createNamespace('early');
  await expect.poll(() => existsSync(served.conflist)).toBe(true);
  expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
  expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
  await expect
    .poll(() => told('ERR_IPTABLES_LOCK'))
    .toMatchObject([{ level: 'warn', err: { facts: { path: lockFile, holder: pid, holderProgram: 'sleep' } } }]);
  expect([await page('/livez'), await page('/healthz')]).toEqual([200, 503]);
  release();
  await expect.poll(() => [holdsServices('IPv4'), holdsServices('IPv6')]).toEqual([true, true]);
  await expect.poll(() => page('/healthz')).toBe(200);
});

it('SIGTERM ends an agent that waits for the lock', async () => {
  await holdLock();
  await start({ until: 'live', flags: legacy });
  const { pid, ended } = agent!;
  process.kill(pid, 'SIGTERM');
  expect(await ended).toBe(0);
});

it('a lock held later fails syncs, is told with its holder, and is no reason to restart the agent', async () => {
  const { told } = await start({ flags: [...legacy, '--iptables-sync-period', '1s'] });
  const pid = await holdLock();
  const service = makeService('demo/later', { clusterIP: '10.96.0.77' });
  saveManifest(join(folder, 'manifests'), 'later.yaml', manifestOf(service));
  await expect
    .poll(() => told('ERR_IPTABLES_LOCK')[0])
    .toMatchObject({ level: 'error', err: { facts: { holder: pid } } });
  await expect.poll(() => page('/healthz')).toBe(503);
  expect(await page('/livez')).toBe(200);
  release();
  await expect.poll(() => node.iptablesSave('legacy')).toContain('10.96.0.77');
  await expect.poll(() => page('/healthz')).toBe(200);
});

/** A PATH whose iptables of one family finds no table nat. */
function withoutNat(program: 'iptables' | 'ip6tables'): readonly string[] {
  const bin = join(folder, `no-${program}`);
  mkdirSync(bin);
  for (const variant of ['legacy', 'nft']) {
    const file = join(bin, `${program}-${variant}`);
    writeFileSync(file, '#!/bin/sh\necho "Table does not exist (do you need to insmod?)" >&2\nexit 3\n');
    chmodSync(file, 0o755);
  }
  return ['ip', 'netns', 'exec', node.namespace.name, 'env', `PATH=${bin}:${process.env.PATH}`];
}

it('a primary family that does not work ends the proxy, not the pods’ network; another one is left out', async () => {
  const enter = withoutNat('iptables');
  const manifests = join(folder, 'manifests');
  const ended = node.startAgent({ manifests, enter });
  await expect(ended).rejects.toThrow(/ended with status 1.*Cannot serve IPv4.*do you need to insmod/s);

  const { told } = await start({ until: 'live', enter });
  await expect.poll(() => told('ERR_CONFIG')).toMatchObject([{ level: 'error', err: { facts: { family: 'IPv4' } } }]);
  expect([await page('/livez'), await page('/healthz')]).toEqual([200, 503]);
  const pod = createNamespace('unserved');
  await expect.poll(() => existsSync(served.conflist)).toBe(true);
  expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
  expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
  await agent!.stop();

  await start({ enter: withoutNat('ip6tables') });
  await expect.poll(() => page('/healthz')).toBe(200);
});
