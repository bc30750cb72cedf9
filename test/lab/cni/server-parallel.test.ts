import { spawn } from 'node:child_process';
import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Agent } from '../lab.ts';
import { createNamespace, own, removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';
import { linksOf, reaches } from './fixture.ts';
import { holdReservations, waitsForReservations } from './lock-holder.ts';
import { createServedNode, type ServedNode } from './served-node.ts';

let served: ServedNode;
let agent: Agent;

const veths = () => linksOf(served.node.namespace).filter(({ ifname }) => ifname.startsWith('veth'));
const addressesOf = (ips: readonly { address: string }[] = []) => ips.map(({ address }) => address.replace(/\/.*/, ''));

beforeEach(async () => {
  served = createServedNode();
  agent = await served.startAgent();
});
afterEach(removeAll);

describe('the agent', () => {
  it('serves 24 pods, 8 at a time, each with addresses of its own', async () => {
    const pods = Array.from({ length: 24 }, (_, i) => createNamespace(`pod${i}`));
    const waiting = [...pods];
    const addresses: string[] = [];
    const lane = async () => {
      for (let pod = waiting.pop(); pod; pod = waiting.pop()) {
        const { status, stdout, json } = await served.call('ADD', pod);
        expect(status, stdout).toBe(0);
        addresses.push(...addressesOf(json!.ips));
      }
    };
    await Promise.all(Array.from({ length: 8 }, lane));
    expect(new Set(addresses).size).toBe(48);
    expect(served.reservations()).toHaveLength(48);
    expect(reaches(pods[0]!, '10.244.1.1')).toBe(true);
    const outcomes = await Promise.all(pods.map((pod) => served.call('DEL', pod)));
    expect(outcomes.filter(({ status }) => status !== 0)).toEqual([]);
    expect(served.reservations()).toEqual([]);
    expect(veths()).toEqual([]);
  });

  it('lets only one of two ADDs of the same attachment succeed, and both of two DELs', async () => {
    for (let round = 0; round < 5; round++) {
      const pod = createNamespace(`twice${round}`);
      const added = await Promise.all([served.call('ADD', pod), served.call('ADD', pod)]);
      expect(added.map(({ status }) => status).sort()).toEqual([0, 1]);
      expect(served.reservations()).toHaveLength(2);
      expect(veths()).toHaveLength(1);
      const removed = await Promise.all([served.call('DEL', pod), served.call('DEL', pod)]);
      expect(removed.map(({ status }) => status)).toEqual([0, 0]);
      expect(served.reservations()).toEqual([]);
      expect(veths()).toEqual([]);
    }
  });

  it('takes an ADD back whose plugin was killed, and does not begin one', async () => {
    const release = await holdReservations(served);
    const [running, queued] = [createNamespace('running'), createNamespace('queued')];
    const first = served.start('ADD', running);
    await expect.poll(() => waitsForReservations(agent.pid)).toBe(true);
    const second = served.start('ADD', queued);
    // Both are gone before the agent, which is busy with the first, can hear of it.
    await expect.poll(() => existsSync(`/proc/${second.child.pid}/task`)).toBe(true);
    first.child.kill('SIGKILL');
    second.child.kill('SIGKILL');
    await Promise.all([first.outcome, second.outcome]);
    release();
    await expect.poll(() => agent.logs().some(({ msg }) => String(msg).startsWith('CNI ADD taken back'))).toBe(true);
    await expect.poll(() => served.reservations()).toEqual([]);
    expect(veths()).toEqual([]);
    expect(await served.call('ADD', running)).toMatchObject({ status: 0 });
  });

  it('ends what runs when it is stopped, and says what it waits for when that takes long', async () => {
    const release = await holdReservations(served);
    const pod = createNamespace('pod');
    const adding = served.start('ADD', pod);
    await expect.poll(() => waitsForReservations(agent.pid)).toBe(true);
    const stopped = agent.stop();
    const late = () => agent.logs().filter(({ msg }) => String(msg).startsWith('The end takes long'));
    await expect.poll(late).toMatchObject([{ waitsFor: 'CniPart' }]);
    release();
    expect(await adding.outcome).toMatchObject({ status: 0, json: { ips: expect.any(Array) } });
    expect(await stopped).toBe(0);
    expect(served.reservations()).toHaveLength(2);
  });

  it('needs no path to the pod’s namespace', async () => {
    await agent.stop();
    const hide = 'mount -t tmpfs none /run/netns && exec "$@"';
    agent = await served.startAgent({
      enter: ['ip', 'netns', 'exec', served.node.namespace.name, 'unshare', '-m', 'sh', '-c', hide, 'sh'],
    });
    const pod = createNamespace('pod');
    const { status, stdout, json } = await served.call('ADD', pod);
    expect(status, stdout).toBe(0);
    expect(json!.interfaces!.at(-1)!.sandbox).toBe(pod.path);
    expect(reaches(pod, '10.244.1.1')).toBe(true);
    expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
    expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo']);
  });

  it('answers nobody but root', async () => {
    for (const path of [served.folder, join(served.folder, 'run')]) chmodSync(path, 0o755);
    chmodSync(served.socket, 0o666);
    const outcome = await served.call('STATUS', undefined, {
      program: 'setpriv',
      args: ['--reuid=65534', '--regid=65534', '--clear-groups', join(served.binDir, 'nodeplane-cni')],
    });
    expect(outcome).toMatchObject({ status: 1, json: { code: 50 } });
    const refusal = { msg: 'CNI request refused: only root may ask', uid: 65534 };
    await expect.poll(() => agent.logs()).toContainEqual(expect.objectContaining(refusal));
  });

  it('replaces a socket that nobody answers, and none that somebody does', async () => {
    await agent.kill();
    expect(existsSync(served.socket)).toBe(true);
    agent = await served.startAgent();
    expect(await served.call('STATUS')).toMatchObject({ status: 0 });

    const args = [
      'agent',
      '--manifests',
      join(served.folder, 'manifests'),
      '--hostname-override',
      'node-1',
      ...served.flags,
    ];
    // Without the lock, which would have it wait before it comes to the socket.
    args.push('--agent-lock-dir', '');
    args.push('--healthz-bind-address', '127.0.0.1:20256', '--metrics-bind-address', '127.0.0.1:20249');
    const second = spawn('ip', ['netns', 'exec', served.node.namespace.name, builtProgram('nodeplane'), ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, XTABLES_LOCKFILE: join(served.folder, 'xtables.lock') },
    });
    own(() => void second.kill('SIGKILL'));
    let log = '';
    second.stderr.on('data', (chunk) => {
      log += chunk;
    });
    await expect.poll(() => log).toContain('another process listens there');
    second.kill('SIGKILL');
    expect(await served.call('STATUS')).toMatchObject({ status: 0 });
  });
});
