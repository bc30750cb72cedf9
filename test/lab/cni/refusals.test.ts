import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createFolder, createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { type BareNode, createNode, snapshot } from './fixture.ts';
import { callPlugin, type PluginCall } from './plugin.ts';

afterAll(removeAll);

/** The path of a FIFO that nobody writes to: opening it would wait for ever. */
function fifo(): string {
  const path = join(createFolder('fifo').path, 'fifo');
  execFileSync('mkfifo', [path]);
  return path;
}

/** Sends an ADD that must be refused, and checks that it left no trace. */
async function refused(node: BareNode, pods: readonly TestNamespace[], call: Partial<PluginCall>) {
  const spaces = [node.namespace, ...pods];
  const before = snapshot(spaces, node.dataDir);
  const outcome = await callPlugin(node.namespace, { command: 'ADD', netns: pods[0]!, config: node.config(), ...call });
  expect(outcome.status).toBe(1);
  expect(outcome.stderr).toBe('');
  expect(snapshot(spaces, node.dataDir)).toEqual(before);
  return outcome.json!;
}

describe('on a node without pods, ADD changes nothing and says why', () => {
  let node: BareNode;
  let pod: TestNamespace;
  beforeEach(() => {
    node = createNode();
    pod = createNamespace('pod');
  });
  afterEach(removeAll);

  it.each<[string, (node: BareNode) => Partial<PluginCall>, number, RegExp]>([
    [
      'missing variables',
      () => ({ env: { CNI_PATH: undefined, CNI_IFNAME: undefined } }),
      4,
      /^required env variables \[CNI_IFNAME,CNI_PATH\] missing$/,
    ],
    ['a missing container ID', () => ({ env: { CNI_CONTAINERID: '' } }), 4, /\[CNI_CONTAINERID\]/],
    ['a container ID that is a path', () => ({ containerId: '../../etc/x' }), 4, /CNI_CONTAINERID/],
    ['an interface name that is too long', () => ({ ifname: 'sixteen-bytes-xx' }), 4, /CNI_IFNAME/],
    ['an unknown command', () => ({ command: 'UPDATE' }), 4, /CNI_COMMAND "UPDATE"/],
    ['bad JSON', () => ({ config: '{"name": "net",' }), 6, /JSON/],
    [
      'JSON of 6,000 levels',
      () => ({ config: `{"cniVersion":"1.1.0","name":"net","prevResult":${'['.repeat(6000)}${']'.repeat(6000)}}` }),
      6,
      /nested more than 64 deep/,
    ],
    [
      'more than 2 MiB',
      () => ({ config: ' '.repeat((2 << 20) + 1) }),
      5,
      /^Cannot read the network configuration from/,
    ],
    ['no JSON', () => ({ config: '' }), 6, /standard input is empty/],
    ['an unsupported version', (n) => ({ config: n.config({ cniVersion: '2.0.0' }) }), 1, /incompatible CNI versions/],
    ['a network name that is a path', (n) => ({ config: n.config({ name: '../x' }) }), 7, /name "\.\.\/x"/],
    [
      'an unknown namespace',
      () => ({ netns: '/run/netns/nodeplane-not-there' }),
      4,
      /^Cannot use CNI_NETNS "\/run\/netns\/nodeplane-not-there": it is no network namespace$/,
    ],
    [
      'a file that is no namespace',
      () => ({ netns: '/etc/hostname' }),
      4,
      /CNI_NETNS "\/etc\/hostname": it is no network/,
    ],
    ['a namespace of another type', () => ({ netns: '/proc/self/ns/uts' }), 4, /it is no network namespace/],
    ['its own namespace', (n) => ({ netns: n.namespace }), 8, /is the network namespace the plugin runs in/],
    ['its own namespace by another path', () => ({ netns: '/proc/self/ns/net' }), 8, /the plugin runs in/],
    ['the name of the loopback', () => ({ ifname: 'lo' }), 104, /^Interface "lo" already exists/],
    [
      'an IPAM plugin that is not there',
      (n) => ({ config: n.config({}, { type: 'x' }) }),
      7,
      /IPAM plugin "x" in CNI_PATH/,
    ],
    [
      'a feature it lacks',
      (n) => ({ config: n.config({ mode: 'routed', ingressPolicy: 'same-bridge' }) }),
      2,
      /"ingressPolicy".* "same-bridge" in mode "routed"/,
    ],
    [
      'an address outside the ranges',
      (n) => ({ config: n.config(), env: { CNI_ARGS: 'IP=10.9.9.9' } }),
      107,
      /10\.9\.9\.9/,
    ],
    ['the gateway’s address', (n) => ({ config: n.config(), env: { CNI_ARGS: 'IP=10.244.1.1' } }), 107, /gateway/],
    ['an unknown key in CNI_ARGS', (n) => ({ config: n.config(), env: { CNI_ARGS: 'FOO=1' } }), 4, /"FOO"/],
    [
      'a result of a plugin that made the interface already',
      (n) => ({
        config: n.config({
          prevResult: { cniVersion: '1.0.0', interfaces: [{ name: 'eth0', sandbox: '/run/netns/x' }], ips: [] },
        }),
      }),
      7,
      /put this one first/,
    ],
    ['a FIFO as namespace', () => ({ netns: fifo() }), 4, /no network namespace/],
    ['a bad range', (n) => ({ config: n.config({}, { ranges: [[{ subnet: '10.0.0.1/24' }]] }) }), 7, /host bits/],
    ['no ranges', (n) => ({ config: n.config({}, { ranges: [] }) }), 7, /names no address range/],
    [
      'overlapping ranges',
      (n) => ({ config: n.config({}, { ranges: [[{ subnet: '10.0.0.0/24' }], [{ subnet: '10.0.0.128/25' }]] }) }),
      7,
      /overlaps/,
    ],
    [
      'a range without usable address',
      (n) => ({ config: n.config({}, { subnet: '10.5.0.0/30', rangeEnd: '10.5.0.1', ranges: [] }) }),
      102,
      /no IP addresses available in range set: 10\.5\.0\.1-10\.5\.0\.1, 0 in use/,
    ],
    [
      'a resolvConf that is not there',
      (n) => ({ config: n.config({}, { resolvConf: '/nonexistent/x' }) }),
      5,
      /ipam\.resolvConf, "\/nonexistent\/x"/,
    ],
    ['an MTU too small for IPv6', (n) => ({ config: n.config({ mtu: 1000 }) }), 7, /mtu 1000/],
  ])('given %s', async (_, call, code, message) => {
    const json = await refused(node, [pod], call(node));
    expect(json.msg).toMatch(message);
    expect(json.code).toBe(code);
  });

  it('when a link that is no bridge has the name of the bridge', async () => {
    node.namespace.run('ip', 'link', 'add', 'cni0', 'type', 'veth', 'peer', 'name', 'other');
    expect(await refused(node, [pod], {})).toMatchObject({
      code: 106,
      msg: 'Link "cni0" exists and is no bridge but of kind "veth"; remove it or choose another name by the key "bridge"',
    });
  });

  it('when the bridge has the address of another range', async () => {
    node.namespace.run('ip', 'link', 'add', 'cni0', 'type', 'bridge');
    node.namespace.run('ip', 'address', 'add', '10.99.0.1/16', 'dev', 'cni0');
    const json = await refused(node, [pod], {});
    expect(json.code).toBe(106);
    expect(json.msg).toContain('has the address 10.99.0.1/16 where the network needs 10.244.1.1/24');
    expect(json.msg).toContain('forceAddress');
  });

  it('when the directory of reservations cannot be used', async () => {
    writeFileSync(join(node.dataDir, 'net'), 'a file');
    expect(await refused(node, [pod], {})).toMatchObject({ code: 5, msg: expect.stringContaining(node.dataDir) });
  });
});

describe('on a node with a pod, ADD changes nothing', () => {
  const ranges = [[{ subnet: '10.7.0.0/29' }], [{ subnet: '10.8.0.0/30' }]];
  let node: BareNode;
  let pod: TestNamespace;
  beforeEach(async () => {
    node = createNode();
    pod = createNamespace('pod');
    await node.add(pod, { config: node.config({}, { ranges }) });
  });
  afterEach(removeAll);

  it('when the pod has the interface already', async () => {
    const json = await refused(node, [pod], { containerId: pod.name, config: node.config({}, { ranges }) });
    expect(json).toMatchObject({
      code: 104,
      msg: `Interface "eth0" already exists in the network namespace "${pod.path}"; send DEL before another ADD`,
    });
  });

  it('when the same container interface is attached in another namespace', async () => {
    const other = createNamespace('other');
    const json = await refused(node, [other, pod], { containerId: pod.name, config: node.config({}, { ranges }) });
    expect(json.code).toBe(104);
    expect(json.msg).toMatch(/exists already, perhaps in another network namespace; send DEL first$/);
  });

  it('when one of the ranges is exhausted', async () => {
    const other = createNamespace('other');
    const json = await refused(node, [other, pod], { config: node.config({}, { ranges }) });
    expect(json.code).toBe(102);
    expect(json.msg).toContain('no IP addresses available in range set: 10.8.0.1-10.8.0.2, 1 in use');
  });

  it('when addresses are held by files nobody can read', async () => {
    mkdirSync(join(node.dataDir, 'net', '10.9.0.2'));
    const other = createNamespace('other');
    const config = node.config({}, { ranges: [[{ subnet: '10.9.0.0/30' }]] });
    expect(await refused(node, [other], { config })).toMatchObject({ code: 106 });
    const elsewhere = node.config({ bridge: 'cni1' }, { ranges: [[{ subnet: '10.9.0.0/30' }]] });
    expect(await refused(node, [other], { config: elsewhere })).toMatchObject({ code: 102 });
  });
});
