import { afterEach, describe, expect, it } from 'vitest';
import { attachmentKey, type ContainerId, type InterfaceName, type NetworkName } from '../../../src/cni/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { createNode, linksOf } from './fixture.ts';
import { holdNode } from './lock-holder.ts';
import { callPlugin, startPlugin } from './plugin.ts';

afterEach(removeAll);

/** The name of the link on the node by which a pod is attached to the network of `createNode`. */
function hostNameOf(pod: TestNamespace): string {
  const owner = { containerId: pod.name as ContainerId, ifname: 'eth0' as InterfaceName };
  return attachmentKey('net' as NetworkName, owner).hostName;
}

/** A veth pair of somebody else, without alias and switched off, one end of which has a name that a pod needs. */
function makeStranger(namespace: TestNamespace, name: string) {
  namespace.run('ip', 'link', 'add', name, 'type', 'veth', 'peer', 'name', 'stranger');
  return strangerOf(namespace, name);
}

function strangerOf(namespace: TestNamespace, name: string) {
  const { ifname, address, flags, master, ifalias } = linksOf(namespace).find((link) => link.ifname === name)!;
  return { ifname, address, flags, master, ifalias };
}

describe('a link of the name that a pod needs, made by somebody else', () => {
  it('before: ADD says so, and neither ADD, DEL nor GC touches it', async () => {
    const node = createNode();
    const pod = createNamespace('pod');
    const hostName = hostNameOf(pod);
    const before = makeStranger(node.namespace, hostName);
    const call = { containerId: pod.name, netns: pod, config: node.config() };
    expect(await callPlugin(node.namespace, { command: 'ADD', ...call })).toMatchObject({
      status: 1,
      json: { code: 104, msg: expect.stringContaining(`"${hostName}", which belongs to somebody else`) },
    });
    await node.del(pod);
    const config = node.config({ 'cni.dev/valid-attachments': [] });
    expect(await callPlugin(node.namespace, { command: 'GC', config })).toMatchObject({ status: 0 });
    expect(strangerOf(node.namespace, hostName)).toEqual(before);
    expect(node.reservations()).toEqual([]);
  });

  it.each(['node', 'pod'])('on the %s while an ADD is under way: it is neither changed nor deleted', async (where) => {
    const node = createNode();
    const pod = createNamespace('pod');
    const release = await holdNode();
    const { outcome } = startPlugin(node.namespace, {
      command: 'ADD',
      containerId: pod.name,
      netns: pod,
      config: node.config(),
    });
    // It has looked for links by then, and made none.
    await expect.poll(() => node.reservations()).toHaveLength(2);
    const [namespace, name] = where === 'node' ? [node.namespace, hostNameOf(pod)] : [pod, 'eth0'];
    const before = makeStranger(namespace, name);
    release();
    expect(await outcome).toMatchObject({
      status: 1,
      stderr: '',
      json: {
        code: 104,
        msg: expect.stringContaining(`"${name}" of the ${where} was made by somebody else meanwhile`),
      },
    });
    expect(strangerOf(namespace, name)).toEqual(before);
    expect(node.reservations()).toEqual([]);
  });
});
