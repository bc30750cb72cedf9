import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { callPlugin } from '../cni/plugin.ts';
import { installedConfig } from '../cni/served-node.ts';
import { type Agent, createLab, type Lab, type LabNode } from '../lab.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { patient } from '../patience.ts';

/** Each pod and each payload is a process of its own. */
const LONG_MS = patient(300_000);

let lab: Lab;
let nodes: LabNode[];
let agents: Agent[] = [];
const servers: ChildProcess[] = [];

beforeAll(() => {
  lab = createLab({ podRoutes: false });
  nodes = ['node-1', 'node-2'].map((name) => lab.addNode({ name }));
  mkdirSync(join(lab.folder, 'manifests'));
  for (const { name, ips, podCidrs } of nodes) {
    const addresses = ips.map((address) => ({ type: 'InternalIP', address }));
    const object = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
      spec: { podCIDRs: podCidrs },
      status: { addresses },
    };
    writeFileSync(join(lab.folder, 'manifests', `${name}.json`), JSON.stringify(object));
  }
});
afterEach(async () => {
  for (const server of servers.splice(0)) server.kill();
  await Promise.all(agents.map((agent) => agent.stop()));
  agents = [];
});
afterAll(removeAll);

const hostPath = (node: LabNode, ...path: string[]) => join(lab.folder, `host-${node.name}`, ...path);
const socketOf = (node: LabNode) => hostPath(node, 'run', 'cni.sock');
const conflistOf = (node: LabNode) => hostPath(node, 'net.d', '10-nodeplane.conflist');

async function startAgents(...flags: string[]): Promise<void> {
  const starts = nodes.map((node) => {
    const cni = ['--cni', '--cni-socket', socketOf(node), '--cni-bin-dir', hostPath(node, 'bin')];
    cni.push('--cni-conf-dir', hostPath(node, 'net.d'), '--cni-spool-dir', hostPath(node, 'spool'));
    cni.push('--cni-data-dir', hostPath(node, 'data'));
    const all = ['--proxy-mode', 'nftables', ...cni, ...flags];
    return node.startAgent({ manifests: join(lab.folder, 'manifests'), flags: all });
  });
  agents = await Promise.all(starts);
}

/** A pod that the node's agent attached as a runtime asks for it. */
interface ServedPod {
  readonly namespace: TestNamespace;
  /** IPv4, then IPv6. */
  readonly ips: readonly string[];
}

async function addPod(node: LabNode, name: string, config: object = {}): Promise<ServedPod> {
  const namespace = createNamespace(name);
  const { json } = await callPlugin(node.namespace, {
    command: 'ADD',
    config: { ...installedConfig(conflistOf(node)), ...config },
    program: hostPath(node, 'bin', 'nodeplane-cni'),
    netns: namespace,
    containerId: namespace.name,
    env: { NODEPLANE_CNI_SOCKET: socketOf(node), NODEPLANE_CNI_SPOOL: hostPath(node, 'spool') },
  });
  expect(json).toMatchObject({ ips: [{}, {}] });
  return { namespace, ips: json!.ips!.map(({ address }) => address.replace(/\/\d+$/, '')) };
}

const mtuOf = (namespace: TestNamespace, link: string) =>
  Number(/ mtu (\d+)/.exec(namespace.run('ip', '-o', 'link', 'show', link))?.[1]);

/** Answers with how many bytes came, in both families, once it listens. */
async function countBytes({ namespace }: ServedPod): Promise<void> {
  const program = `require('node:net').createServer({ allowHalfOpen: true }, (socket) => {
    let bytes = 0;
    socket.on('data', (data) => (bytes += data.length)).on('end', () => socket.end(String(bytes)));
  }).listen(9000, '::', () => console.log('listens'))`;
  const child = spawn('ip', ['netns', 'exec', namespace.name, process.execPath, '-e', program], { stdio: 'pipe' });
  servers.push(child);
  await new Promise((resolve) => child.stdout.once('data', resolve));
}

/** Sends so many bytes over TCP and returns what the other side says; '' when nobody is there. */
function send({ namespace }: ServedPod, ip: string, bytes: number): string {
  const program = `const socket = require('node:net').connect(9000, '${ip}');
    socket.setTimeout(5000, () => socket.destroy()).on('error', () => {}).pipe(process.stdout);
    socket.end(Buffer.alloc(${bytes}))`;
  return namespace.run(process.execPath, '-e', program);
}

/** How many packets were cut into fragments so far, or had to be put together, in both families. */
function fragments(namespace: TestNamespace): number {
  const names = ['IpFragCreates', 'IpReasmReqds', 'Ip6FragCreates', 'Ip6ReasmReqds'];
  const text = namespace.run('nstat', '-asz', ...names);
  const counts = names.map((name) => Number(new RegExp(`^${name} +(\\d+)`, 'm').exec(text)?.[1]));
  return counts.reduce((sum, count) => sum + count, 0);
}

const warnings = (agent: Agent | undefined) =>
  agent!.logs().filter(({ msg }) => String(msg).startsWith('Pods have another MTU'));

describe('pods get the MTU of the way to other nodes', () => {
  it(
    '--routes vxlan: the tunnel’s, the smaller of both families; large payloads pass without fragments',
    async () => {
      await startAgents('--routes', 'vxlan');
      const [from, to] = await Promise.all(nodes.map((node, index) => addPod(node, `vx-${index}`)));
      expect([mtuOf(from!.namespace, 'eth0'), mtuOf(to!.namespace, 'eth0')]).toEqual([1430, 1430]);
      expect(mtuOf(nodes[0]!.namespace, 'cni0')).toBe(1430);
      await countBytes(to!);
      const places = [from!.namespace, to!.namespace, ...nodes.map(({ namespace }) => namespace)];
      for (const ip of to!.ips) await expect.poll(() => send(from!, ip, 1)).toBe('1');
      const before = places.map(fragments);
      for (const ip of to!.ips) {
        for (const bytes of [9000, 1 << 20]) expect(send(from!, ip, bytes)).toBe(String(bytes));
      }
      expect(places.map(fragments)).toEqual(before);
      expect(before.every(Number.isInteger)).toBe(true);
      const metrics = await agents[0]!.metrics();
      for (const family of ['IPv4', 'IPv6']) {
        const out = new RegExp(`^nodeplane_routes_tunnel_bytes_out_total\\{ip_family="${family}"\\} (\\d+)$`, 'm');
        expect(Number(out.exec(metrics)?.[1])).toBeGreaterThan(1 << 20);
      }
    },
    LONG_MS,
  );

  it(
    'a change is told to new pods; those that exist are warned about once, with their number',
    async () => {
      const [node] = nodes;
      await startAgents('--routes', 'vxlan');
      const old = await addPod(node!, 'old');
      node!.namespace.run('ip', 'link', 'set', 'eth0', 'mtu', '1400');
      await expect.poll(() => mtuOf(node!.namespace, 'nodeplane-v6')).toBe(1330);
      const young = await addPod(node!, 'young');
      expect([mtuOf(old.namespace, 'eth0'), mtuOf(young.namespace, 'eth0')]).toEqual([1430, 1330]);
      // What the node itself sends would not get through the young pod's port.
      expect(mtuOf(node!.namespace, 'cni0')).toBe(1330);
      await expect.poll(() => warnings(agents[0]).at(-1)).toMatchObject({ mtu: 1330, pods: 2, have: [1430] });
      node!.namespace.run('ip', 'link', 'set', 'eth0', 'mtu', '1500');
      await expect.poll(() => warnings(agents[0]).at(-1)).toMatchObject({ mtu: 1430, pods: 1, have: [1330] });
      expect(warnings(agents[0])).toHaveLength(2);
    },
    LONG_MS,
  );

  it(
    '--routes host-gw: the underlay’s; and what the operator’s configuration says wins',
    async () => {
      const [node] = nodes;
      node!.namespace.run('ip', 'link', 'set', 'eth0', 'mtu', '1420');
      await startAgents('--routes', 'host-gw');
      await expect.poll(() => node!.namespace.run('ip', '-o', 'link')).not.toContain('nodeplane-v');
      const [plain, chosen] = [await addPod(node!, 'plain'), await addPod(node!, 'chosen', { mtu: 1300 })];
      expect([mtuOf(plain.namespace, 'eth0'), mtuOf(chosen.namespace, 'eth0')]).toEqual([1420, 1300]);
      node!.namespace.run('ip', 'link', 'set', 'eth0', 'mtu', '1500');
    },
    LONG_MS,
  );
});
