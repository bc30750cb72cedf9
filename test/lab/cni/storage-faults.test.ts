import { spawn } from 'node:child_process';
import { readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createNamespace, own, removeAll, type TestNamespace } from '../namespace.ts';
import { builtProgram } from '../programs.ts';
import { type BareNode, createNode, linksOf } from './fixture.ts';
import { callPlugin } from './plugin.ts';

afterEach(removeAll);

/** The directory of reservations as a disk of its own, in a mount namespace for the plugin. */
interface OwnDisk {
  call(command: string, pod: TestNamespace): ReturnType<typeof callPlugin>;
  /** Leaves room for so many files. */
  fill(files: number): void;
  remount(options: string): void;
  /** The files of attachments, also half-made ones. */
  files(): string[];
}

const FILES_OF_THE_NODE = /^(lock|last_reserved_ip\.\d|boot-id|entry\.tmp|filler)$/;

async function createDisk(node: BareNode): Promise<OwnDisk> {
  const script = `mount -t tmpfs -o size=1m none ${node.dataDir} && echo mounted && exec sleep 300`;
  const holder = spawn('unshare', ['--mount', '--propagation', 'slave', 'sh', '-c', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  own(() => void holder.kill('SIGKILL'));
  await new Promise((resolve) => holder.stdout.once('data', resolve));
  const inside = `--mount=/proc/${holder.pid}/ns/mnt`;
  const path = join(`/proc/${holder.pid}/root`, node.dataDir);
  const filler = join(path, 'filler');
  return {
    call(command, pod) {
      const program = { program: 'nsenter', args: [inside, builtProgram('nodeplane-cni')] };
      return callPlugin(node.namespace, {
        command,
        containerId: pod.name,
        netns: pod,
        config: node.config(),
        ...program,
      });
    },
    fill(files) {
      rmSync(filler, { force: true });
      const { bavail, bsize } = statfsSync(path);
      writeFileSync(filler, Buffer.alloc(Math.max(0, bavail - files) * bsize));
    },
    remount: (options) => node.namespace.run('nsenter', inside, 'mount', '-o', `remount,${options}`, node.dataDir),
    files: () =>
      readdirSync(path, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && !FILES_OF_THE_NODE.test(entry.name))
        .map(({ name }) => name),
  };
}

it('a full disk refuses ADDs with nothing left of them, wherever it is full, and hinders no DEL', async () => {
  const node = createNode();
  const disk = await createDisk(node);
  const [pod, other] = [createNamespace('pod'), createNamespace('other')];
  expect(await disk.call('ADD', other)).toMatchObject({ status: 0 });
  const before = disk.files();
  const outcomes: (number | null)[] = [];
  for (let room = 0; outcomes.at(-1) !== 0; room++) {
    disk.fill(room);
    const { status, json } = await disk.call('ADD', pod);
    outcomes.push(status);
    if (status === 0) break;
    expect(json).toMatchObject({ code: 5, details: expect.stringContaining('ENOSPC') });
    expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo']);
    expect(disk.files(), `with room for ${room} files`).toEqual(before);
    expect(await disk.call('DEL', pod)).toMatchObject({ status: 0 });
    expect(disk.files()).toEqual(before);
  }
  expect(outcomes.length).toBeGreaterThan(2);
  disk.fill(0);
  const { json } = await disk.call('STATUS', pod);
  expect(json).toMatchObject({ code: 50, msg: expect.stringContaining('no space is left on its disk') });
  for (const attached of [pod, other]) expect(await disk.call('DEL', attached)).toMatchObject({ status: 0 });
  expect(disk.files()).toEqual([]);
});

it('a disk that can only be read refuses ADD and DEL, and a DEL succeeds when it can be written again', async () => {
  const node = createNode();
  const disk = await createDisk(node);
  const [pod, other] = [createNamespace('pod'), createNamespace('other')];
  expect(await disk.call('ADD', other)).toMatchObject({ status: 0 });
  disk.remount('ro');
  for (const [command, whose] of [
    ['ADD', pod],
    ['DEL', other],
    ['DEL', other],
  ] as const) {
    const { status, json } = await disk.call(command, whose);
    expect({ command, status, json }).toMatchObject({
      status: 1,
      json: { code: 5, details: expect.stringContaining('EROFS') },
    });
  }
  expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo']);
  disk.remount('rw');
  for (const attached of [pod, other]) expect(await disk.call('DEL', attached)).toMatchObject({ status: 0 });
  expect(disk.files()).toEqual([]);
});
