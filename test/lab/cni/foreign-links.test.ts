import { afterEach, describe, expect, it } from 'vitest';
import type { Attaching } from '../../../src/cni/link/attaching.ts';
import { createVeth } from '../../../src/cni/link/host-link.ts';
import { openPodNamespace } from '../../../src/cni/link/pod-namespace.ts';
import { UndoStack } from '../../../src/cni/link/undo.ts';
import { attachmentKey } from '../../../src/cni/protocol/attachment-key.ts';
import type { AttachmentEnvironment, NetworkName } from '../../../src/cni/protocol/environment.ts';
import { Netlink } from '../../../src/netlink/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { createNode, linksOf } from './fixture.ts';
import { callPlugin } from './plugin.ts';

afterEach(removeAll);

const POD_MAC = Uint8Array.of(2, 0, 0, 0, 0, 7);

/** The name of the link on the node by which a pod is attached to the network of `createNode`. */
function keyOf(pod: TestNamespace) {
  const owner = { containerId: pod.name, ifname: 'eth0' } as Pick<AttachmentEnvironment, 'containerId' | 'ifname'>;
  return attachmentKey('net' as NetworkName, owner);
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
    const { hostName } = keyOf(pod);
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
    const [host, pod] = [createNamespace('host'), createNamespace('pod')];
    const key = keyOf(pod);
    const [namespace, name] = where === 'node' ? [host, key.hostName] : [pod, 'eth0'];
    const before = makeStranger(namespace, name);
    const undo = new UndoStack();
    expect(() => makeVeth(host, pod, undo)).toThrow(
      expect.objectContaining({ cniCode: 104, message: expect.stringContaining(`"${name}" of the ${where} was made`) }),
    );
    const warnings: string[] = [];
    await undo.run((warning) => warnings.push(warning));
    expect(warnings).toEqual([]);
    expect(strangerOf(namespace, name)).toEqual(before);
  });
});

it('what an ADD made is switched on and says whose it is', () => {
  const [host, pod] = [createNamespace('host'), createNamespace('pod')];
  const undo = new UndoStack();
  const { hostName, alias } = keyOf(pod);
  expect(makeVeth(host, pod, undo)).toMatchObject({ name: hostName });
  expect(strangerOf(host, hostName)).toMatchObject({ ifalias: alias, flags: expect.arrayContaining(['UP']) });
});

/** As an ADD does that has found both names free. */
function makeVeth(host: TestNamespace, pod: TestNamespace, undo: UndoStack) {
  const environment = { netns: pod.path, netnsFd: undefined, allowOwnNetns: true } as AttachmentEnvironment;
  const namespace = openPodNamespace(environment);
  const attaching: Pick<Attaching, 'key' | 'pod' | 'undo'> = { key: keyOf(pod), pod: namespace, undo };
  try {
    return inNetns(host.path, () => createVeth(Netlink.openRoute(), attaching, { mtu: undefined, podMac: POD_MAC }));
  } finally {
    namespace.close();
  }
}
