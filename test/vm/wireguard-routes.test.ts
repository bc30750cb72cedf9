import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { formatCidr } from '../../src/core/index.ts';
import { closing, Netlink } from '../../src/netlink/index.ts';
import { getLink } from '../../src/netlink/route/index.ts';
import {
  formatKey,
  generatePrivateKey,
  getWireguard,
  openWireguard,
  setWireguard,
  type WireguardDevice,
} from '../../src/netlink/wireguard/index.ts';
import { inNetns } from '../../src/sys/index.ts';
import { type Agent, createLab, type LabNode, type Pod, removeAll } from '../lab/lab.ts';
import { patient } from '../lab/patience.ts';
import { builtProgram } from '../lab/programs.ts';

// Two nodes with the agent and `--routes wireguard`; here, because it takes a kernel with WireGuard.

const FAMILIES = ['IPv4', 'IPv6'] as const;
const DEVICE = 'nodeplane-wg';
const PORT = 8080;

const lab = createLab({ podRoutes: false });
const manifests = join(lab.folder, 'manifests');
const one = lab.addNode({ name: 'node-1' });
const two = lab.addNode({ name: 'node-2' });
const nodes = [one, two];
const keyFile = ({ name }: LabNode) => join(lab.folder, `${name}.key`);
/** What the Node objects say: as there is no API server, somebody has to carry the keys from the agents' logs there. */
const told = new Map<LabNode, string>();
const agents = new Map<LabNode, Agent>();
let pod1: Pod;
let pod2: Pod;
let courier: NodeJS.Timeout;

function tell(node: LabNode, publicKey: string): void {
  if (told.get(node) === publicKey) return;
  told.set(node, publicKey);
  const annotations = publicKey === '' ? '{}' : `{ nodeplane.io/wireguard-public-key: "${publicKey}" }`;
  const addresses = node.ips.map((address) => `{ type: InternalIP, address: "${address}" }`).join(', ');
  const text = `apiVersion: v1
kind: Node
metadata: { name: ${node.name}, annotations: ${annotations} }
spec: { podCIDRs: [${node.podCidrs.map((cidr) => `"${cidr}"`).join(', ')}] }
status: { addresses: [${addresses}] }
`;
  writeFileSync(join(manifests, `.${node.name}.new`), text);
  renameSync(join(manifests, `.${node.name}.new`), join(manifests, `${node.name}.yaml`));
}

const keyInForce = (node: LabNode) =>
  (agents
    .get(node)
    ?.logs()
    .flatMap(({ publicKey }) => publicKey ?? [])
    .at(-1) ?? '') as string;

async function start(node: LabNode): Promise<void> {
  const flags = [
    ...['--proxy-mode', 'nftables', '--routes', 'wireguard', '--routes-wireguard-key-file', keyFile(node)],
    ...['--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48'],
  ];
  agents.set(node, await node.startAgent({ manifests, flags }));
  const inForce = () => expect(node.namespace.run('nft', 'list ruleset')).toContain('chain encrypted-only-ipv4');
  await vi.waitFor(inForce, { timeout: patient(20_000), interval: 20 });
}

/** The device as the kernel has it; undefined: there is none. */
function device(node: LabNode): WireguardDevice | undefined {
  return inNetns(node.namespace.path, () => {
    const link = closing(Netlink.openRoute(), (netlink) => getLink(netlink, { name: DEVICE }));
    const { netlink, family } = openWireguard();
    return closing(netlink, () => link && getWireguard(netlink, family, link.index));
  });
}

const allowed = (node: LabNode) => device(node)?.peers.map(({ allowedIps }) => allowedIps.map(formatCidr).sort());
const ofNode = ({ podCidrs, ips }: LabNode) =>
  [...podCidrs, ...ips.map((address) => `${address}/${address.includes(':') ? 128 : 32}`)].sort();

const ask = async (from: Pod, to: Pod, family: (typeof FAMILIES)[number]) => {
  const outcome = await from.connect({ ip: to.ip(family), port: PORT }, { timeoutMs: 3000 });
  return outcome.kind === 'answered' ? `${outcome.by} saw ${outcome.source}` : outcome.kind;
};
const answers = (from: Pod, to: Pod) => expect.poll(() => Promise.all(FAMILIES.map((family) => ask(from, to, family))));
const bothFrom = (from: Pod, to: Pod) => FAMILIES.map((family) => `${to.name} saw ${from.ip(family)}`);

/** What leaves a node for others: packets of WireGuard, and packets with addresses of pods, which nobody should see there. */
function watchWire({ namespace }: LabNode): void {
  namespace.run(
    ...['nft', 'add table inet seen; add chain inet seen out { type filter hook postrouting priority 300; }; '],
    ...['add rule inet seen out oifname eth0 udp sport 51820 counter comment "wireguard"; '],
    ...['add rule inet seen out oifname eth0 ip daddr 10.244.0.0/16 counter comment "plain"; '],
    ...['add rule inet seen out oifname eth0 ip saddr 10.244.0.0/16 counter comment "plain"; '],
    ...['add rule inet seen out oifname eth0 ip6 daddr fd00:10:244::/48 counter comment "plain"; '],
    ...['add rule inet seen out oifname eth0 ip6 saddr fd00:10:244::/48 counter comment "plain"'],
  );
}

function seenOnWire({ namespace }: LabNode): Record<'wireguard' | 'plain', number> {
  const sums = { wireguard: 0, plain: 0 };
  for (const [, packets, what] of namespace
    .run('nft', 'list table inet seen')
    .matchAll(/packets (\d+) .*comment "(\w+)"/g))
    sums[what as keyof typeof sums] += Number(packets);
  return sums;
}

/** A machine of emulated processors loses a datagram of thousands now and then, whatever is done; what loses some each time is found. */
const AGAIN = { retry: 2 };

/** Numbered datagrams there and back again, none of which is sent twice, while something is changed. */
async function lostWhile(change: () => Promise<void>): Promise<number> {
  const flow = await pod1.startFlow({ ip: pod2.ip(), port: PORT }, { perSecond: 50 });
  const answered = async () => (await flow.report()).answered;
  await expect.poll(answered).toBeGreaterThan(5);
  await change();
  const before = await answered();
  await expect.poll(answered).toBeGreaterThan(before + 100);
  const { sent, answered: all } = await flow.stop();
  return sent - all;
}

beforeAll(async () => {
  mkdirSync(manifests);
  for (const node of nodes) {
    watchWire(node);
    tell(node, '');
  }
  pod1 = one.addPod('pod-1');
  pod2 = two.addPod('pod-2');
  for (const pod of [pod1, pod2]) {
    await pod.serve({ port: PORT });
    await pod.serve({ port: PORT, protocol: 'UDP' });
  }
  courier = setInterval(() => {
    for (const node of nodes) if (agents.has(node)) tell(node, keyInForce(node) || told.get(node)!);
  }, 50);
  await Promise.all(nodes.map(start));
});
afterEach(async () => {
  await answers(pod1, pod2).toEqual(bothFrom(pod1, pod2));
  for (const node of nodes) expect(seenOnWire(node).plain).toBe(0);
});
afterAll(async () => {
  clearInterval(courier);
  await Promise.all([...agents.values()].map((agent) => agent.stop()));
  removeAll();
});

it('nodes that have told their keys reach each other’s pods', async () => {
  await answers(pod1, pod2).toEqual(bothFrom(pod1, pod2));
  await answers(pod2, pod1).toEqual(bothFrom(pod2, pod1));
});

it('pods reach pods on other nodes with their own addresses, and nothing but WireGuard is on the wire', async () => {
  await answers(pod1, pod2).toEqual(bothFrom(pod1, pod2));
  await answers(pod2, pod1).toEqual(bothFrom(pod2, pod1));
  for (const node of nodes) expect(seenOnWire(node).wireguard).toBeGreaterThan(10);
  // A packet that is not tracked is not translated either.
  expect(one.namespace.run('conntrack', '-L', '-p', 'udp')).not.toContain('51820');
  expect(allowed(one)).toEqual([ofNode(two)]);
  expect(one.namespace.run('ip', '-o', 'link', 'show', DEVICE)).toContain('mtu 1420');
  const metrics = await agents.get(one)!.metrics();
  expect(metrics).toMatch(/^nodeplane_routes_peers\{ip_family="IPv6",way="wireguard"\} 1$/m);
  expect(metrics).toMatch(/^nodeplane_routes_wireguard_peers 1$/m);
  expect(metrics).toMatch(/^nodeplane_routes_tunnel_packets_out_total\{ip_family="any"\} [1-9]/m);
});

it('processes of a node reach pods on another one, and are seen with an address of the first', async () => {
  for (const family of FAMILIES) {
    const outcome = await one.connect({ ip: pod2.ip(family), port: PORT });
    expect(outcome).toMatchObject({ kind: 'answered', by: 'pod-2' });
    expect(['10.244.1.0', 'fd00:10:244:1::']).toContain((outcome as { source: string }).source);
  }
  // As a process that spoke to a ClusterIP: what it has chosen for its source would be answered in the clear.
  for (const family of FAMILIES) {
    const options = { localAddress: one.ip(family), host: pod2.ip(family), port: PORT };
    const text = `require('node:net').connect(${JSON.stringify(options)}).on('connect', () => process.exit(0))`;
    one.namespace.run('node', '-e', text);
  }
});

it('nodeplane routes shows the other node, and when it was heard of', async () => {
  const { peers, drift } = JSON.parse(one.namespace.run(builtProgram('nodeplane'), 'routes', '--json')) as Record<
    string,
    unknown
  >;
  expect(drift).toEqual([]);
  expect(peers).toMatchObject(
    FAMILIES.map((family, index) => ({
      node: 'node-2',
      family,
      mode: 'wireguard',
      device: DEVICE,
      gateway: null,
      address: two.ip(family),
      podCidrs: [two.podCidrs[index]],
      mtu: 1420,
      reachable: 'yes',
      because: expect.stringMatching(/^last handshake \d+ s ago$/),
    })),
  );
});

it('an agent that starts again takes nothing away: no packet is lost', AGAIN, async () => {
  const lost = await lostWhile(async () => {
    await agents.get(one)!.stop();
    await start(one);
  });
  expect(lost).toBe(0);
});

it('a key that is replaced comes into force without the loss of a packet', AGAIN, async () => {
  const before = told.get(two);
  const lost = await lostWhile(async () => {
    const path = keyFile(two);
    writeFileSync(`${path}.new`, `${formatKey(generatePrivateKey())}\n`, { mode: 0o600 });
    renameSync(`${path}.new`, path);
    await expect.poll(() => told.get(two)).not.toBe(before);
    await expect.poll(() => device(one)?.peers.map(({ publicKey }) => formatKey(publicKey))).toEqual([told.get(two)]);
  });
  expect(lost).toBe(0);
});

it.each([
  ['deleted', ['ip link delete nodeplane-wg']],
  ['switched off', ['ip link set nodeplane-wg down']],
  ['switched off and on', ['ip link set nodeplane-wg down', 'ip link set nodeplane-wg up']],
])('a device that is %s is brought back at once', async (_, commands) => {
  for (const command of commands) one.namespace.run(...(command.split(' ') as [string, ...string[]]));
  await answers(pod1, pod2).toEqual(bothFrom(pod1, pod2));
  expect(allowed(one)).toEqual([ofNode(two)]);
});

it('a device whose peers somebody took away is mended within a minute or two', async () => {
  inNetns(one.namespace.path, () => {
    const { netlink, family } = openWireguard();
    closing(netlink, () =>
      netlink.execute(...setWireguard(family, device(one)!.index, { peers: [], replacePeers: true })),
    );
  });
  expect(allowed(one)).toEqual([]);
  await expect.poll(() => allowed(one), { timeout: 200_000 }).toEqual([ofNode(two)]);
}, 300_000);

it('a node that leaves is no peer any more, and is one again when it is back', async () => {
  const key = told.get(two)!;
  clearInterval(courier);
  rmSync(join(manifests, 'node-2.yaml'));
  await expect.poll(() => allowed(one)).toEqual([]);
  expect(one.namespace.run('ip', 'route', 'show', two.podCidrs[0]!)).toBe('');
  told.delete(two);
  tell(two, key);
  await answers(pod1, pod2).toEqual(bothFrom(pod1, pod2));
});

it('nodeplane cleanup --routes removes the device', async () => {
  await agents.get(one)!.stop();
  const said = one.namespace.run(builtProgram('nodeplane'), 'cleanup', '--routes');
  expect(said).toMatch(/^routes to other nodes \(IPv4\): \d+ objects removed$/m);
  expect(device(one)).toBeUndefined();
  for (const family of ['-4', '-6']) expect(one.namespace.run('ip', family, 'route', 'show', 'proto', '78')).toBe('');
  await start(one);
  await answers(pod1, pod2).toEqual(bothFrom(pod1, pod2));
});
