import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { IpFamily } from '../../../src/core/index.ts';
import { type Agent, createLab, type Host, type LabNode, type Pod, removeAll, tally } from '../lab.ts';
import { patient } from '../patience.ts';
import { openFrameSocket } from './frames.ts';

// NodePorts at 127.0.0.1 and ::1, by the real agent with real packets: who reaches them and who never does. What is the same
// in every mode is in test/dataplane/scenarios.ts (`nodePortOfLoopback`).

const WEB = 30_080;
const STICKY = 30_081;
const ON_NODE = 30_082;
const DEAF = 30_083;
const LOCALHOST: Readonly<Record<IpFamily, string>> = { IPv4: '127.0.0.1', IPv6: '::1' };
const STAND_IN: Readonly<Record<IpFamily, string>> = { IPv4: '192.0.0.127', IPv6: 'fd02:de25:5500::1' };
const FAMILIES = ['IPv4', 'IPv6'] as const;
const SILENCE_MS = 500;
const IPV6_SYNCED = /^kubeproxy_sync_proxy_rules_last_timestamp_seconds\{[^}]*ip_family="IPv6"[^}]*\} [1-9]/m;

const lab = createLab();
const node: LabNode = lab.addNode({ name: 'node-1' });
const manifests = join(lab.folder, 'manifests');
const run = (program: string, ...args: string[]) => node.namespace.run(program, ...args);
let pods: readonly Pod[];
let stranger: Host;
let agent: Agent | undefined;

beforeAll(async () => {
  pods = [node.addPod('web-1'), node.addPod('web-2'), node.addPod('web-3')];
  stranger = lab.addClient('stranger', { ips: ['192.168.50.102', 'fd00:50::102'] });
  for (const pod of pods) for (const protocol of ['TCP', 'UDP'] as const) await pod.serve({ port: 8080, protocol });
  for (const protocol of ['TCP', 'UDP'] as const) await node.serve({ port: 8080, protocol });
  mkdirSync(manifests);
  writeServices(true);
});
afterEach(async () => {
  await agent?.stop();
  agent = undefined;
});
afterAll(removeAll);

function writeServices(withWeb: boolean): void {
  const nodeObject = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-1' },
    spec: { podCIDRs: node.podCidrs },
    status: { addresses: node.ips.map((address) => ({ type: 'InternalIP', address })) },
  };
  const services = [
    ...(withWeb ? serviceObjects('web', { n: 10, nodePort: WEB }) : []),
    ...serviceObjects('sticky', { n: 11, nodePort: STICKY, spec: { sessionAffinity: 'ClientIP' } }),
    ...serviceObjects('on-node', { n: 12, nodePort: ON_NODE, endpoints: [node] }),
    ...serviceObjects('deaf', { n: 13, nodePort: DEAF, targetPort: 8081 }),
  ];
  const list = { apiVersion: 'v1', kind: 'List', items: [nodeObject, ...services] };
  writeFileSync(join(lab.folder, 'new.json'), JSON.stringify(list));
  renameSync(join(lab.folder, 'new.json'), join(manifests, 'all.json'));
}

interface ServiceInput {
  /** In its ClusterIPs. */
  readonly n: number;
  readonly nodePort: number;
  readonly spec?: object;
  /** @default the pods */
  readonly endpoints?: readonly Host[];
  /** @default 8080 */
  readonly targetPort?: number;
}

function serviceObjects(
  name: string,
  { n, nodePort, spec, endpoints = pods, targetPort = 8080 }: ServiceInput,
): object[] {
  const clusterIPs = [`10.96.0.${n}`, `fd00:96::${n}`];
  const ports = (['TCP', 'UDP'] as const).map((protocol) => ({ name: protocol.toLowerCase(), protocol }));
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'demo' },
    spec: {
      type: 'NodePort',
      clusterIP: clusterIPs[0],
      clusterIPs,
      ipFamilies: FAMILIES,
      ports: ports.map((port) => ({ ...port, port: 80, nodePort })),
      ...spec,
    },
  };
  const slices = FAMILIES.map((addressType) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${addressType.toLowerCase()}`,
      namespace: 'demo',
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType,
    ports: ports.map((port) => ({ ...port, port: targetPort })),
    endpoints: endpoints.map((host) => ({
      addresses: [host.ip(addressType)],
      conditions: { ready: true },
      nodeName: 'node-1',
    })),
  }));
  return [service, ...slices];
}

async function start(mode: string, ...flags: string[]): Promise<Agent> {
  const fixed = ['--proxy-mode', mode, '--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48'];
  const often = ['--iptables-sync-period', '1s', '--iptables-min-sync-period', '0s'];
  const started = await node.startAgent({ manifests, flags: [...fixed, ...often, ...flags] });
  agent = started;
  // It is ready with its first sync of IPv4.
  await expect.poll(() => started.metrics(), { timeout: patient(30_000) }).toMatch(IPV6_SYNCED);
  return started;
}

const atLocalhost = (family: IpFamily, port = WEB, protocol: 'TCP' | 'UDP' = 'TCP') => ({
  ip: LOCALHOST[family],
  port,
  protocol,
});
const ask = async (family: IpFamily, port = WEB) => (await node.connect(atLocalhost(family, port))).kind;

describe.each(['nftables', 'iptables'])('%s: NodePorts at localhost', (mode) => {
  it('are never reached by a neighbour nor by a pod, at 127.0.0.1, ::1 or what stands in for them', async () => {
    // As others may leave it.
    run('sysctl', '-qw', 'net.ipv4.conf.all.route_localnet=1');
    const { logs } = await start(mode, '--localhost-nodeports');
    expect(logs().some(({ msg }) => String(msg).startsWith('net.ipv4.conf.all.route_localnet is on'))).toBe(true);
    const attackers = [
      { host: stranger, link: 'eth0', towards: 'eth0' },
      { host: pods[0]!, link: 'eth0', towards: 'cni0' },
    ];
    for (const { host, link, towards } of attackers) {
      const mac = run('cat', `/sys/class/net/${towards}/address`);
      const socket = openFrameSocket(host.namespace, link);
      try {
        for (const family of FAMILIES) {
          const [known, unknown] = [
            { fromPort: 40_000, port: WEB },
            { fromPort: 40_001, port: WEB },
          ];
          // The frames are right: the same ones get an answer at the node's address.
          socket.sendSyn(mac, { ...known, from: host.ip(family), to: node.ip(family) });
          await expect.poll(() => socket.segmentsTo(known.fromPort), { timeout: patient(5000) }).toBeGreaterThan(0);
          for (const to of [LOCALHOST[family], STAND_IN[family]]) {
            for (const from of [host.ip(family), LOCALHOST[family], STAND_IN[family]]) {
              socket.sendSyn(mac, { ...unknown, from, to });
            }
          }
          await delay(SILENCE_MS);
          expect(socket.segmentsTo(unknown.fromPort)).toBe(0);
        }
      } finally {
        socket.close();
      }
    }
    for (const family of FAMILIES) expect(await ask(family)).toBe('answered');
  });

  it('keep a client with one endpoint where the Service has affinity', async () => {
    await start(mode, '--localhost-nodeports');
    for (const family of FAMILIES) {
      await node.connect(atLocalhost(family, STICKY));
      const { answers } = tally(await node.connectMany(atLocalhost(family, STICKY), 20));
      expect(Object.values(answers)).toEqual([20]);
    }
  });

  it('reach an endpoint in the node’s own network, and are told when an endpoint refuses', async () => {
    await start(mode, '--localhost-nodeports');
    for (const family of FAMILIES) {
      for (const protocol of ['TCP', 'UDP'] as const) {
        expect((await node.connect(atLocalhost(family, ON_NODE, protocol))).kind).toBe('answered');
        expect((await node.connect(atLocalhost(family, DEAF, protocol))).kind).toBe('refused');
      }
    }
  });

  it('answer where NodePorts answer at loopback addresses only, or at the primary address only', async () => {
    await start(mode, '--localhost-nodeports', '--nodeport-addresses', '127.0.0.0/8,::1/128');
    for (const family of FAMILIES) {
      expect(await ask(family)).toBe('answered');
      expect((await stranger.connect({ ip: node.ip(family), port: WEB })).kind).toBe('refused');
    }
    await agent!.stop();
    await start(mode, '--localhost-nodeports', '--nodeport-addresses', 'primary');
    for (const family of FAMILIES) expect(await ask(family)).toBe('answered');
  });

  it('outlast the agent: established connections and new ones, and those of a Service that is gone', async () => {
    await start(mode, '--localhost-nodeports');
    const held = await Promise.all(FAMILIES.map((family) => node.hold(atLocalhost(family))));
    await agent!.stop();
    for (const family of FAMILIES) expect(await ask(family)).toBe('answered');
    await start(mode, '--localhost-nodeports');
    for (const connection of held) expect((await connection.echo()).kind).toBe('answered');
    writeServices(false);
    try {
      for (const family of FAMILIES) {
        await expect.poll(() => ask(family), { timeout: patient(20_000) }).toBe('refused');
        expect((await node.connect(atLocalhost(family, WEB, 'UDP'))).kind).toBe('refused');
      }
      for (const connection of held) expect((await connection.echo()).kind).toBe('answered');
    } finally {
      writeServices(true);
    }
    for (const family of FAMILIES) {
      await expect.poll(() => ask(family), { timeout: patient(20_000) }).toBe('answered');
      expect((await node.connect(atLocalhost(family, WEB, 'UDP'))).kind).toBe('answered');
    }
    for (const connection of held) await connection.close();
  });

  it('are brought back after others removed their rules or the stand-in', async () => {
    const { metrics } = await start(mode, '--localhost-nodeports');
    expect(await metrics()).toContain('nodeplane_localhost_nodeports{ip_family="IPv4"} 8');
    run('nft', 'delete', 'table', 'ip', 'nodeplane-localhost');
    run('nft', 'flush', 'set', 'ip6', 'nodeplane-localhost', 'nodeports');
    run('ip', 'route', 'del', 'local', STAND_IN.IPv4, 'table', 'local');
    for (const family of FAMILIES) {
      await expect.poll(() => ask(family), { timeout: patient(20_000) }).toBe('answered');
    }
    const repaired = () => agent!.logs().some(({ msg }) => String(msg).includes('changed by others and are repaired'));
    await expect.poll(repaired, { timeout: patient(20_000) }).toBe(true);
  });

  it('go when nobody asks for them any more, and nothing of them is left', async () => {
    await start(mode, '--localhost-nodeports');
    const traces = () => [
      run('nft', 'list', 'tables').includes('nodeplane-localhost'),
      run('ip', 'route', 'show', 'table', 'local').includes(STAND_IN.IPv4),
      run('ip', '-6', 'route', 'show', 'table', 'local').includes(STAND_IN.IPv6),
    ];
    expect(traces()).toEqual([true, true, true]);
    await agent!.stop();
    await start(mode, '--iptables-localhost-nodeports=false');
    expect(traces()).toEqual([false, false, false]);
    for (const family of FAMILIES) expect(await ask(family)).toBe('refused');
  });
});

it('are there by default as in kube-proxy: at 127.0.0.1 in mode iptables', async () => {
  run('sysctl', '-qw', 'net.ipv4.conf.all.route_localnet=0');
  await start('iptables');
  expect([await ask('IPv4'), await ask('IPv6')]).toEqual(['answered', 'refused']);
  await agent!.stop();
  await start('nftables');
  expect([await ask('IPv4'), await ask('IPv6')]).toEqual(['refused', 'refused']);
});
