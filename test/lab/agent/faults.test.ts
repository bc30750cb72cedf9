import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeService } from '../../fakes/service-objects.ts';
import { manifestOf, nodeObject, saveManifest } from '../../samples/manifests.ts';
import { type Agent, createLab, type LabNode, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';

const lab = createLab();
const node: LabNode = lab.addNode({ name: 'node-1' });
const manifests = join(lab.folder, 'manifests');
const run = (program: string, ...args: string[]) => node.namespace.run(program, ...args);
let agent: Agent | undefined;
/** Lines in the log before this agent started: all write into one file. */
let earlierLines: number;

beforeAll(() => {
  mkdirSync(manifests);
  const service = makeService('demo/web', {
    type: 'NodePort',
    clusterIP: '10.96.0.10',
    ports: [{ name: 'http', port: 80, nodePort: 30080 }],
  });
  saveManifest(manifests, 'all.yaml', manifestOf(nodeObject(node), service));
});
afterEach(async () => {
  await agent?.stop();
});
afterAll(removeAll);

const start = async (mode: string, ...flags: string[]) => {
  earlierLines = agent?.logs().length ?? 0;
  agent = await node.startAgent({ manifests, flags: ['--proxy-mode', mode, '--iptables-sync-period', '1s', ...flags] });
  return agent;
};
const logged = (part: string) =>
  agent!
    .logs()
    .slice(earlierLines)
    .filter(({ msg }) => String(msg).includes(part));

describe.each(['nftables', 'iptables'])('%s: an agent without descriptors', (mode) => {
  it('goes on by the addresses it knows, says so, and looks again when it can', async () => {
    const { pid, metrics } = await start(mode);
    const limit = (files: string) => execFileSync('prlimit', ['--pid', String(pid), `--nofile=${files}`]);
    const soft = () => /Max open files\s+(\d+)/.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))![1]!;
    const before = soft();
    // Those that are open stay; not one more can be opened.
    limit('5:');
    await expect
      .poll(() => logged('Work beside the syncs failed').length, { timeout: patient(20_000) })
      .toBeGreaterThan(1);
    expect(logged('Work beside the syncs failed')[0]).toMatchObject({ work: 'address listing' });
    limit(`${before}:`);
    await expect
      .poll(metrics, { timeout: patient(20_000) })
      .toMatch(/nodeplane_background_failures_total\{work="address listing"\} [1-9]/);
    expect(await metrics()).not.toContain('work="unknown"');
    expect(await agent!.stop()).toBe(0);
  });
});

describe('a full disk under the log', () => {
  it('does not end the agent', async () => {
    const enter = ['sh', '-c', 'exec ip netns exec "$0" "$@" 2>/dev/full', node.namespace.name];
    agent = await node.startAgent({ manifests, enter, flags: ['--proxy-mode', 'nftables'] });
    writeFileSync(join(manifests, 'broken.yaml'), 'kind: [');
    await expect.poll(agent.metrics, { timeout: patient(20_000) }).toMatch(/nodeplane_object_problems [1-9]/);
    rmSync(join(manifests, 'broken.yaml'));
    await expect.poll(agent.metrics, { timeout: patient(20_000) }).toMatch(/nodeplane_object_problems 0/);
    expect(await agent.stop()).toBe(0);
  });
});

describe('signals', () => {
  it('neither kill the agent nor open it to debuggers; SIGHUP ends it as SIGTERM does', async () => {
    const { pid, ended } = await start('nftables');
    for (const signal of ['SIGUSR1', 'SIGUSR2', 'SIGPIPE'] as const) process.kill(pid, signal);
    await expect.poll(() => logged('does nothing at this signal').length, { timeout: patient(20_000) }).toBe(2);
    // The inspector listens at 127.0.0.1:9229.
    expect(run('ss', '-Hltn')).not.toContain(':9229');
    expect(readFileSync(agent!.logFile, 'utf8')).not.toContain('Debugger listening');
    process.kill(pid, 'SIGHUP');
    expect(await ended).toBe(0);
    expect(logged('stops; the rules stay in place')).toMatchObject([{ signal: 'SIGHUP' }]);
  });
});
