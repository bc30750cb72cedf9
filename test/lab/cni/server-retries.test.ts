import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { patient } from '../patience.ts';
import { createServedNode, installedConfig } from './served-node.ts';

// What looks after pods goes on when what was in its way is gone, although nothing tells of that.

afterEach(removeAll);

const LONG_MS = patient(60_000);

it(
  'rules of pods that were flushed while the notes could not be read come back when they can',
  async () => {
    const served = createServedNode();
    const agent = await served.startAgent();
    const runtimeConfig = { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: 'tcp' }] };
    const config = { ...installedConfig(served.conflist), runtimeConfig };
    expect(await served.call('ADD', createNamespace('pod'), { config })).toMatchObject({ status: 0 });
    const isThere = () => served.node.namespace.run('nft', 'list', 'ruleset').includes('8080');
    expect(isThere()).toBe(true);

    renameSync(served.dataDir, `${served.dataDir}.away`);
    writeFileSync(served.dataDir, '');
    served.node.namespace.run('nft', 'flush', 'ruleset');
    const told = () =>
      agent.logs().filter(({ msg }) => String(msg).startsWith('The rules of pods cannot be looked after'));
    await expect.poll(told).toMatchObject([{ err: { code: 'ERR_IPAM_STORE' } }]);
    await delay(patient(12_000));
    expect(told()).toHaveLength(1);
    rmSync(served.dataDir);
    renameSync(`${served.dataDir}.away`, served.dataDir);
    await expect.poll(isThere, { timeout: patient(10_000) }).toBe(true);
  },
  LONG_MS,
);

it(
  'forwarding that is switched off comes back after the agent was without descriptors',
  async () => {
    const served = createServedNode();
    const { pid, logs } = await served.startAgent();
    expect(await served.call('ADD', createNamespace('pod'))).toMatchObject({ status: 0 });
    const before = /Max open files\s+(\d+)/.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))![1]!;
    const limit = (files: string) => execFileSync('prlimit', ['--pid', String(pid), `--nofile=${files}:`]);
    limit('5');
    const failed = () => logs().filter(({ work }) => work === 'forwarding of the node');
    await expect.poll(() => failed().length, { timeout: patient(20_000) }).toBeGreaterThan(0);
    limit(before);
    const { run } = served.node.namespace;
    run('sysctl', '-qw', 'net.ipv4.ip_forward=0');
    await expect
      .poll(() => run('sysctl', '-n', 'net.ipv4.ip_forward').trim(), { timeout: patient(20_000), interval: 500 })
      .toBe('1');
  },
  LONG_MS,
);
