import { existsSync, readdirSync, readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { execIn } from '../iptables/fixtures.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { builtProgram } from '../programs.ts';
import { createNode } from './fixture.ts';
import { callPlugin } from './plugin.ts';
import { createServedNode, installedConfig, type ServedNode } from './served-node.ts';

afterEach(removeAll);

const recordOf = ({ name }: TestNamespace) => `${name}\r\neth0`;
const networkOf = ({ dataDir }: ServedNode) => join(dataDir, 'nodeplane');
/** The file of the only note about a pod. */
const noteOf = (served: ServedNode) => {
  const folder = join(networkOf(served), '.nodeplane');
  return join(folder, readdirSync(folder).find((name) => name.startsWith('veth'))!);
};

it('GC does not give the address of a running pod away because its file is empty', async () => {
  const node = createNode();
  const [pod, next] = [createNamespace('pod'), createNamespace('next')];
  const config = node.config({}, { ranges: [[{ subnet: '10.244.1.0/29' }]] });
  await node.add(pod, { config });
  truncateSync(join(node.dataDir, 'net', '10.244.1.2'));
  const attachments = [{ containerID: pod.name, ifname: 'eth0' }];
  const gc = { ...config, 'cni.dev/valid-attachments': attachments };
  expect(await callPlugin(node.namespace, { command: 'GC', config: gc })).toMatchObject({ status: 0, stderr: '' });
  expect(node.reservations()).toEqual(['10.244.1.2']);
  expect((await node.add(next, { config })).ips).toMatchObject([{ address: '10.244.1.3/29' }]);
  for (const attached of [pod, next]) await node.del(attached, { config });
  expect(node.reservations()).toEqual([]);
});

it('the agent writes reservations of running pods again that were emptied or removed, and says so', async () => {
  const served = createServedNode();
  let agent = await served.startAgent();
  const pod = createNamespace('pod');
  expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
  await agent.stop();
  const [first, second] = served.reservations().map((name) => join(networkOf(served), name)) as [string, string];
  truncateSync(first, 3);
  truncateSync(second);
  agent = await served.startAgent();
  await expect
    .poll(() => [first, second].map((file) => readFileSync(file, 'utf8')))
    .toEqual([recordOf(pod), recordOf(pod)]);
  const message = 'CNI: the file that reserves a pod’s address was removed or damaged, and is written again';
  await expect
    .poll(() => agent.logs().filter(({ msg }) => msg === message))
    .toMatchObject([
      { address: '10.244.1.2', container: pod.name },
      { address: 'fd00:10:244:1::2', container: pod.name },
    ]);
  expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
  expect(served.reservations()).toEqual([]);
});

it('a note that cannot be read is told in the log and by nodeplane diff, until DEL or GC removes it', async () => {
  const served = createServedNode();
  let agent = await served.startAgent();
  const [pod, dead] = [createNamespace('pod'), createNamespace('dead')];
  expect(await served.call('ADD', pod)).toMatchObject({ status: 0 });
  await agent.stop();
  const note = noteOf(served);
  truncateSync(note, 40);
  agent = await served.startAgent();
  const message = 'CNI: the note about a pod cannot be read; nobody looks after its rules and its interface';
  await expect
    .poll(() => agent.logs().filter(({ msg }) => msg === message))
    .toMatchObject([{ path: note, remedy: expect.stringContaining('delete the pod') }]);
  const diff = await execIn(served.node.namespace)(builtProgram('nodeplane'), ['diff']);
  expect(diff.stdout).toContain(`note "${note}"`);
  expect(await served.call('DEL', pod)).toMatchObject({ status: 0 });
  expect(existsSync(note)).toBe(false);

  expect(await served.call('ADD', dead)).toMatchObject({ status: 0 });
  truncateSync(noteOf(served));
  const gc = { ...installedConfig(served.conflist), 'cni.dev/valid-attachments': [] };
  expect(await served.call('GC', undefined, { config: gc })).toMatchObject({ status: 0 });
  expect(readdirSync(join(networkOf(served), '.nodeplane'))).toEqual(['boot-id']);
  expect(served.reservations()).toEqual([]);
});
