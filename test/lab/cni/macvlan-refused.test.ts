import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { type BareNode, createNode, linksOf, snapshot } from './fixture.ts';
import { callPlugin, type PluginCall } from './plugin.ts';

const POD_ANNOTATIONS = 'io.kubernetes.cri.pod-annotations';
const MASTERS = ['up0', 'default', 'nosuch', 'lo', 'port9', 'pass9', 'tun9'];
type State = { readonly namespaces: readonly object[] };

let node: BareNode;
let pod: TestNamespace;

/** A call for a pod that asks, by the agent's key in the configuration. */
function asking(value: string, key: object = {}, namespace = 'egress'): PluginCall {
  const macvlan = { namespaces: ['egress'], masters: MASTERS, routes: [], ...key };
  const runtimeConfig = { [POD_ANNOTATIONS]: { 'nodeplane.io/assign-macvlan': value } };
  return {
    command: 'ADD',
    netns: pod,
    containerId: pod.name,
    config: node.config({ macvlan, runtimeConfig }),
    env: { CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=router-1` },
  };
}

beforeAll(() => {
  node = createNode();
  pod = createNamespace('pod');
  for (const command of [
    'link set lo up',
    'link add up0 type veth peer name up1',
    'link set up0 up',
    'link set up1 up',
    'address add 192.0.2.1/24 dev up0',
    'link add br9 type bridge',
    'link add port9 type veth peer name other9',
    'link set port9 master br9',
    'link add link other9 name pass9 type macvlan mode passthru',
    'tuntap add tun9 mode tun',
  ]) {
    node.namespace.run('ip', ...command.split(' '));
  }
});
afterAll(removeAll);

describe('a pod is refused macvlan0 with the reason, and gets nothing at all', () => {
  it.each<[string, () => PluginCall, string]>([
    [
      'a namespace that is not allowed',
      () => asking('true', {}, 'shop'),
      'only pods of these namespaces may: "egress"',
    ],
    ['a link that is not allowed', () => asking('up1'), 'only these links may be used: "up0", "default", "nosuch"'],
    ['a link that is not there', () => asking('nosuch'), 'the node has no link "nosuch"'],
    ['the loopback', () => asking('lo'), '"lo" can carry no macvlan, it is the loopback'],
    [
      'a port of a bridge',
      () => asking('port9'),
      '"port9" can carry no macvlan, its frames belong to "br9"; use that link',
    ],
    ['a macvlan that has its link for itself', () => asking('pass9'), 'it is a macvlan in mode passthru'],
    ['a link without MAC', () => asking('tun9'), '"tun9" can carry no macvlan, it is no Ethernet'],
    ['a name that is too long', () => asking('a-name-that-is-too-long'), 'it is longer than 15 bytes'],
    [
      'the default route where there is none',
      () => asking('default'),
      'the node has no default route through a single link',
    ],
  ])('%s', async (_, call, why) => {
    const spaces = [node.namespace, pod];
    const before = snapshot(spaces, node.dataDir) as State;
    const { json } = await callPlugin(node.namespace, call());
    expect(json).toMatchObject({ code: 110, msg: expect.stringContaining(why) });
    expect(json!.msg).toMatch(
      /^Pod "(egress|shop)\/router-1" asks for a macvlan by annotation nodeplane.io\/assign-macvlan "/,
    );
    expect((snapshot(spaces, node.dataDir) as State).namespaces).toEqual(before.namespaces);
    expect(node.reservations()).toEqual([]);
  });

  it('an interface of that name, which stays', async () => {
    pod.run('ip', 'link', 'add', 'peer0', 'type', 'bridge');
    pod.run('ip', 'link', 'add', 'link', 'peer0', 'name', 'macvlan0', 'type', 'macvlan');
    const { json } = await callPlugin(node.namespace, asking('up0'));
    expect(json).toMatchObject({ code: 104, msg: expect.stringContaining('"macvlan0" already exists') });
    expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo', 'peer0', 'macvlan0']);
    pod.run('ip', 'link', 'del', 'peer0');
  });
});

it.each(['macvlan', 'features'])('an ADD killed after "%s" leaves what DEL removes', async (step) => {
  const call = asking('up0');
  const env = { ...call.env, NODEPLANE_CNI_FAILPOINT: step };
  expect(await callPlugin(node.namespace, { ...call, env })).toMatchObject({ status: null, stdout: '' });
  expect(linksOf(pod).map(({ ifname }) => ifname)).toContain('macvlan0');
  // Without a name of the namespace it is found by its number on the host.
  expect(await callPlugin(node.namespace, { ...call, command: 'DEL', netns: '' })).toMatchObject({ status: 0 });
  expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo']);
  expect(node.reservations()).toEqual([]);
});

it('says that the runtime passes no annotations, when it names a pod', async () => {
  const { config, ...call } = asking('up0');
  const { runtimeConfig: _, ...without } = config as { runtimeConfig?: object };
  const { status, stderr } = await callPlugin(node.namespace, { ...call, config: without });
  expect(status).toBe(0);
  expect(stderr).toContain('Key "macvlan" has no effect: the runtime passes no annotations of pods');
  expect(linksOf(pod).map(({ ifname }) => ifname)).toEqual(['lo', 'eth0']);
  await node.del(pod);
});
