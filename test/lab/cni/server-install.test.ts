import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createNamespace, own, removeAll } from '../namespace.ts';
import { patient } from '../patience.ts';
import { builtProgram } from '../programs.ts';
import { createServedNode, type ServedNode } from './served-node.ts';

let served: ServedNode;
const plugin = () => join(served.binDir, 'nodeplane-cni');
const built = () => readFileSync(builtProgram('nodeplane-cni-shim'));

beforeEach(() => {
  served = createServedNode();
});
afterEach(removeAll);

describe('the agent', () => {
  it('installs the configuration last: when the node has pod CIDRs, and an ADD succeeds', async () => {
    served.setPodCidrs([]);
    mkdirSync(served.confDir);
    const seen: string[] = [];
    const outcomes: Promise<unknown>[] = [];
    const watcher = watch(served.confDir, (_, name) => {
      seen.push(String(name));
      // What a runtime does that has just seen it.
      if (name === '10-nodeplane.conflist') outcomes.push(served.call('STATUS'));
    });
    own(() => watcher.close());
    const agent = await served.startAgent();
    expect(readFileSync(plugin()).equals(built())).toBe(true);
    expect(statSync(plugin()).mode & 0o777).toBe(0o755);
    const pod = createNamespace('pod');
    const unknown = 'The pod CIDRs of this node are not known yet';
    expect(await served.call('STATUS')).toMatchObject({ status: 1, json: { code: 50, msg: unknown } });
    expect(await served.call('ADD', pod)).toMatchObject({ status: 1, json: { code: 11, msg: unknown } });
    expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
    expect(readdirSync(served.confDir)).toEqual([]);
    expect(seen).toEqual([]);
    const reason = expect.stringContaining(`An ADD would fail: ${unknown}: `);
    expect(agent.logs()).toContainEqual(expect.objectContaining({ reason }));

    served.setPodCidrs(['10.244.9.0/24']);
    await expect.poll(() => existsSync(served.conflist)).toBe(true);
    const { json } = await served.call('ADD', pod);
    expect(json!.ips).toEqual([expect.objectContaining({ address: expect.stringMatching(/^10\.244\.9\.\d+\/24$/) })]);
    await expect.poll(() => seen.at(-1)).toMatch(/wake/);
    // The rename in the same directory, then the new name, then a removal: each is an event that some runtime looks at.
    const position = (pattern: RegExp) => seen.findIndex((name) => pattern.test(name));
    expect(position(/^\..*\d\.tmp$/)).toBeLessThan(position(/^10-nodeplane\.conflist$/));
    expect(position(/^10-nodeplane\.conflist$/)).toBeLessThan(position(/wake/));
    expect(readdirSync(served.confDir)).toEqual(['10-nodeplane.conflist']);
    for (const outcome of await Promise.all(outcomes)) expect(outcome).toMatchObject({ status: 0 });
    // It holds nothing of the node.
    expect(readFileSync(served.conflist, 'utf8')).not.toContain('10.244');
    expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
  });

  it('leaves a configuration that means the same as it is, and puts back one that does not', async () => {
    let agent = await served.startAgent();
    await agent.stop();
    const dense = JSON.stringify(JSON.parse(readFileSync(served.conflist, 'utf8')));
    writeFileSync(served.conflist, dense);
    agent = await served.startAgent();
    expect(readFileSync(served.conflist, 'utf8')).toBe(dense);
    await agent.stop();
    writeFileSync(served.conflist, '{"half":');
    agent = await served.startAgent();
    await expect.poll(() => readFileSync(served.conflist, 'utf8')).not.toBe('{"half":');
    expect(JSON.parse(readFileSync(served.conflist, 'utf8'))).toEqual(JSON.parse(dense));
  });

  it('puts back at once what somebody removes, with their folders too', async () => {
    const agent = await served.startAgent();
    const soon = { timeout: patient(5000) };
    const isBack = () => expect.poll(() => existsSync(served.conflist) && existsSync(plugin()), soon).toBe(true);
    rmSync(plugin());
    await isBack();
    rmSync(served.conflist);
    await isBack();
    for (const folder of [served.binDir, served.confDir]) rmSync(folder, { recursive: true });
    await isBack();
    expect(await served.call('STATUS')).toMatchObject({ status: 0 });
    const told = () => agent.logs().filter(({ msg }) => String(msg).includes('Somebody removed or changed'));
    // The last one when the disk has it.
    await expect.poll(told, soon).toMatchObject([{ path: served.conflist }, { path: served.conflist }]);
  });

  it('replaces a plugin that is running, and no loopback of others', async () => {
    mkdirSync(served.binDir);
    copyFileSync('/bin/sleep', plugin());
    copyFileSync('/bin/true', join(served.binDir, 'loopback'));
    const running = spawn(plugin(), ['60'], { stdio: 'ignore' });
    own(() => void running.kill('SIGKILL'));
    await served.startAgent();
    expect(readFileSync(plugin()).equals(built())).toBe(true);
    expect(running.exitCode).toBeNull();
    expect(readFileSync(join(served.binDir, 'loopback')).equals(readFileSync('/bin/true'))).toBe(true);
    expect(readdirSync(served.binDir).sort()).toEqual(['loopback', 'nodeplane-cni']);
  });

  it('installs the list it is given, takes ranges from a flag, and tells of a file that sorts earlier', async () => {
    const list = {
      cniVersion: '1.0.0',
      name: 'mine',
      plugins: [{ type: 'nodeplane-cni', ipam: { type: 'nodeplane' } }],
    };
    const file = join(served.folder, 'mine.conflist');
    writeFileSync(file, JSON.stringify(list));
    mkdirSync(served.confDir);
    writeFileSync(join(served.confDir, '05-other.conf'), '{}');
    const agent = await served.startAgent({ flags: ['--cni-conflist', file, '--cni-pod-cidrs', '10.77.0.0/24'] });
    expect(JSON.parse(readFileSync(served.conflist, 'utf8'))).toEqual(list);
    expect(agent.logs()).toContainEqual(expect.objectContaining({ earlier: ['05-other.conf'] }));
    const { json } = await served.call('ADD', createNamespace('pod'));
    expect(json!.ips).toEqual([expect.objectContaining({ address: expect.stringMatching(/^10\.77\.0\.\d+\/24$/) })]);
  });

  it('tells of a file that sorts earlier for as long as it is there, also when it comes later or was there before', async () => {
    const other = join(served.confDir, '10-calico.conflist');
    const told = async () => (await served.node.httpGet('http://127.0.0.1:10249/status?format=json')).body;
    const expected = `New pods get another network: the container runtime takes \\"${other}\\"`;
    const agent = await served.startAgent();
    writeFileSync(other, '{"name":"k8s-pod-network","cniVersion":"0.3.1","plugins":[{"type":"calico"}]}');
    await expect.poll(told, { timeout: patient(10_000) }).toContain(expected);
    await agent.stop();
    await served.startAgent();
    await expect.poll(told, { timeout: patient(10_000) }).toContain(expected);
    rmSync(other);
    await expect.poll(told, { timeout: patient(10_000) }).not.toContain('New pods get another network');
  });

  it('does not start with a list that cannot be used', async () => {
    const file = join(served.folder, 'mine.conflist');
    writeFileSync(file, '{"name":"n","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}');
    await expect(served.startAgent({ flags: ['--cni-conflist', file] })).rejects.toThrow(
      'none of its plugins has the type',
    );
  });
});

describe('nodeplane cleanup --cni', () => {
  const cleanUp = (...more: string[]) => {
    const flags = [...served.flags.slice(1), ...more];
    const { name } = served.node.namespace;
    return spawnSync('ip', ['netns', 'exec', name, builtProgram('nodeplane'), 'cleanup', '--cni', ...flags], {
      encoding: 'utf8',
      env: { ...process.env, XTABLES_LOCKFILE: join(served.folder, 'xtables.lock') },
    });
  };

  it('refuses while an agent runs and while pods are attached, then removes everything', async () => {
    const agent = await served.startAgent();
    const [pod, late] = [createNamespace('pod'), createNamespace('late')];
    for (const each of [pod, late]) expect(await served.call('ADD', each)).toMatchObject({ status: 0 });
    expect(cleanUp()).toMatchObject({ status: 1, stderr: expect.stringContaining('or give --force (ERR_CLEANUP)') });
    // Also one that is not found by its lock, and whatever is forced: it would install the configuration again.
    for (const flags of [['--agent-lock-dir', served.folder], ['--force']]) {
      const stderr = expect.stringContaining('end it first (ERR_CNI_INSTALL)');
      expect(cleanUp(...flags)).toMatchObject({ status: 1, stderr });
    }
    expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
    await agent.stop();
    expect(await served.call('DEL', late)).toMatchObject({ status: 0 });
    expect(cleanUp()).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/still attached \(links: 1, reserved addresses: 2, kept DEL requests: 1\)/),
    });
    expect(existsSync(served.conflist)).toBe(true);

    const next = await served.startAgent();
    await next.stop();
    const { status, stdout, stderr } = cleanUp();
    expect(status, stderr).toBe(0);
    // The configuration first, so that no new pod comes.
    expect(stdout.split('\n')[0]).toBe(`${served.conflist}: removed`);
    expect(readdirSync(served.binDir)).toEqual([]);
    expect(readdirSync(served.confDir)).toEqual([]);
    for (const path of [served.spoolDir, join(served.dataDir, 'nodeplane')]) expect(existsSync(path)).toBe(false);
    expect(cleanUp()).toMatchObject({ status: 0 });
  });

  it('leaves state and pods alone when it is forced', async () => {
    const agent = await served.startAgent();
    const pod = createNamespace('pod');
    expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
    await agent.stop();
    expect(cleanUp('--force')).toMatchObject({ status: 0, stdout: expect.stringContaining('State left in place') });
    expect(existsSync(served.conflist)).toBe(false);
    expect(served.reservations()).toHaveLength(2);
    expect(
      execFileSync('ip', ['netns', 'exec', pod.name, 'ip', 'link', 'show', 'eth0'], { encoding: 'utf8' }),
    ).toContain('UP');
  });
});
