import { rmSync } from 'node:fs';
import { afterEach, expect, it } from 'vitest';
import { createNamespace, removeAll } from '../namespace.ts';
import { createServedNode } from './served-node.ts';

// --cni is dropped from the flags: the runtime goes on making pods by a configuration that nobody serves.

afterEach(removeAll);

it('an agent without --cni says that the configuration of one with --cni is there, until it is gone or served', async () => {
  const served = createServedNode();
  const { node } = served;
  const pod = createNamespace('pod');
  await (await served.startAgent()).stop();
  const flags = ['--cni-conf-dir', served.confDir, '--cni-socket', served.socket];
  const manifests = `${served.folder}/manifests`;
  const agent = await node.startAgent({ manifests, flags, log: 'without' });
  const told = (text: string) => agent.logs().filter(({ msg }) => String(msg).includes(text));
  await expect.poll(() => told('is still here, and nobody serves it')).toHaveLength(1);
  expect(told('is still here')).toMatchObject([
    { present: served.conflist, remedy: expect.stringContaining('give --cni again') },
  ]);
  expect(await served.call('ADD', pod)).toMatchObject({ status: 1 });
  const { body } = await node.httpGet('http://127.0.0.1:10249/status?format=json');
  expect(body).toContain('Pods can be neither made nor removed');
  rmSync(served.conflist);
  await expect.poll(() => told('is gone, or served').length).toBe(1);
  await agent.stop();

  const again = await served.startAgent();
  expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
  expect(again.logs().filter(({ msg }) => String(msg).includes('is still here'))).toEqual([]);
});
