import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { patient } from '../patience.ts';
import { createServedNode } from './served-node.ts';

// A disk that takes seconds to say that something is on it: fsync(2) of the agent alone is slow here.

afterEach(removeAll);

const SLOW = `#include <unistd.h>
int fsync(int fd) { (void)fd; sleep(2); return 0; }
`;

it('keeps nothing waiting but what has to be on it: Services are there, and the agent answers, long before pods can be made', async () => {
  const served = createServedNode();
  const { node, folder } = served;
  const [source, library] = [join(folder, 'slow.c'), join(folder, 'slow.so')];
  writeFileSync(source, SLOW);
  execFileSync(process.env.CC ?? 'cc', ['-shared', '-fPIC', '-o', library, source]);
  const enter = ['env', `LD_PRELOAD=${library}`, 'ip', 'netns', 'exec', node.namespace.name];
  // Within its usual time, and while the plugin waits for the disk.
  const agent = await served.startAgent({ enter, until: 'synced' });
  const installed = () =>
    agent.logs().filter(({ msg }) => String(msg).includes('installed: the runtime can make pods'));
  expect(installed()).toEqual([]);
  let slowestMs = 0;
  while (installed().length === 0) {
    const asked = performance.now();
    expect((await node.httpGet('http://127.0.0.1:10256/livez')).status).toBe(200);
    slowestMs = Math.max(slowestMs, performance.now() - asked);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  expect(slowestMs).toBeLessThan(patient(1500));
  const pod = createNamespace('pod');
  expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
  expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
});
