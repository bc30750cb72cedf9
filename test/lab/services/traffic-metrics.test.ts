import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Agent, createLab, type Host, type LabNode, removeAll, type Target } from '../lab.ts';
import { PATIENCE } from '../patience.ts';

// What clients send through Services, and what the metrics say about it, in the modes whose connections conntrack knows.

const LINES = 20;
const MANY = 300;
const POLL = { timeout: 60_000 * PATIENCE, interval: 200 };
const WEB: Target = { ip: '10.96.0.10', port: 80 };
const DNS: Target = { ip: '10.96.0.53', port: 53, protocol: 'UDP' };

const lab = createLab({ podRoutes: false });
const node: LabNode = lab.addNode({ name: 'node-1' });
const client: Host = node.addPod('client');
const server = node.addPod('server');
const manifests = join(lab.folder, 'manifests');

beforeAll(async () => {
  node.namespace.run('sysctl', '-qw', 'net.netfilter.nf_conntrack_acct=1');
  await server.serve({ port: 8080 });
  await server.serve({ port: 5353, protocol: 'UDP' });
});
afterAll(removeAll);

const save = (name: string, ...items: object[]) =>
  writeFileSync(join(manifests, `${name}.json`), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));

function service(name: string, clusterIP: string, port: object, targetPort: number): object[] {
  const metadata = { name, namespace: 'shop' };
  const labels = { 'kubernetes.io/service-name': name };
  const type = 'nodePort' in port ? 'NodePort' : 'ClusterIP';
  const spec = { clusterIP, type, ports: [{ name: 'main', protocol: 'TCP', ...port }] };
  const { protocol = 'TCP' } = port as { protocol?: string };
  return [
    { apiVersion: 'v1', kind: 'Service', metadata, spec },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `${name}-a`, namespace: 'shop', labels },
      addressType: 'IPv4',
      ports: [{ name: 'main', protocol, port: targetPort }],
      endpoints: [{ addresses: [server.ip()], nodeName: 'node-1', conditions: { ready: true } }],
    },
  ];
}

const saveWeb = () => save('web', ...service('web', WEB.ip, { port: 80, nodePort: 30080 }, 8080));

describe.each(['iptables', 'nftables'])('mode %s', (mode) => {
  let agent: Agent;

  beforeAll(async () => {
    rmSync(manifests, { recursive: true, force: true });
    mkdirSync(manifests);
    const spec = { podCIDR: node.podCidrs[0], podCIDRs: node.podCidrs };
    const status = { addresses: [{ type: 'InternalIP', address: node.ip() }] };
    save('node', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' }, spec, status });
    save('dns', ...service('dns', DNS.ip, { port: 53, protocol: 'UDP' }, 5353));
    saveWeb();
    // What was tracked before is nobody's.
    const flags = ['--proxy-mode', mode, '--service-traffic-metrics', String(LINES)];
    agent = await node.startAgent({ manifests, flags });
  });
  afterAll(async () => {
    expect(await agent.stop()).toBe(0);
    node.namespace.run('conntrack', '-F');
  });

  /** Of one metric by Service: those with the label values. */
  async function series(metric: string, service?: string): Promise<number[]> {
    const lines = (await agent.metrics()).split('\n').filter((line) => line.startsWith(`nodeplane_service_${metric}{`));
    const those = lines.filter((line) => service === undefined || line.includes(`service="${service}"`));
    return those.map((line) => Number(line.split(' ').at(-1)));
  }
  /** Lines of the table of connections, in bytes: there and back. */
  function tracked(target: Target): { flows: number; bytesIn: number; bytesOut: number } {
    const port = ['-p', (target.protocol ?? 'TCP').toLowerCase(), '--orig-port-dst', String(target.port)];
    const text = node.namespace.run('conntrack', '-L', ...port, '-d', target.ip);
    const bytes = [...text.matchAll(/bytes=(\d+).*?bytes=(\d+)/g)];
    const sum = (at: number) => bytes.reduce((all, one) => all + Number(one[at]), 0);
    return { flows: bytes.length, bytesIn: sum(1), bytesOut: sum(2) };
  }
  async function connect(target: Target, times: number): Promise<void> {
    const all = await Promise.all(Array.from({ length: times }, () => client.connect(target)));
    for (const outcome of all) expect(outcome).toMatchObject({ kind: 'answered' });
  }

  it('begins at 0, by port and protocol, with one more series for what has none', async () => {
    const lines = (await agent.metrics()).match(/^nodeplane_service_connections_total.*$/gm);
    expect(lines?.sort()).toEqual([
      'nodeplane_service_connections_total{ip_family="IPv4",namespace="",service="other",port="",protocol=""} 0',
      'nodeplane_service_connections_total{ip_family="IPv4",namespace="shop",service="dns",port="53",protocol="UDP"} 0',
      'nodeplane_service_connections_total{ip_family="IPv4",namespace="shop",service="web",port="80",protocol="TCP"} 0',
    ]);
  });

  it('counts what was sent: connections, packets and bytes', async () => {
    await connect(WEB, 7);
    await connect({ ip: node.ip(), port: 30080 }, 3);
    await connect(DNS, 4);
    // Past the Services: nobody's.
    await connect({ ip: server.ip(), port: 8080 }, 5);
    await expect.poll(() => series('connections_total', 'web'), POLL).toEqual([10]);
    await expect.poll(() => series('open_connections', 'web'), POLL).toEqual([10]);
    await expect.poll(() => series('packets_in_total', 'dns'), POLL).toEqual([4]);
    const sent = tracked(DNS);
    expect(sent.flows).toBe(4);
    const of = async (service: string) => [
      await series('connections_total', service),
      await series('packets_out_total', service),
      await series('bytes_in_total', service),
      await series('bytes_out_total', service),
    ];
    expect(await of('dns')).toEqual([[4], [4], [sent.bytesIn], [sent.bytesOut]]);
    const [cluster, nodePort] = [tracked(WEB), tracked({ ip: node.ip(), port: 30080 })];
    await expect.poll(() => series('bytes_out_total', 'web'), POLL).toEqual([cluster.bytesOut + nodePort.bytesOut]);
    expect(await series('connections_total', 'other')).toEqual([0]);
  });

  it('goes on where it was when connections have ended', async () => {
    const before = [...(await series('bytes_in_total', 'web')), ...(await series('packets_out_total', 'dns'))];
    node.namespace.run('conntrack', '-D', '-p', 'tcp');
    node.namespace.run('conntrack', '-D', '-p', 'udp');
    await expect.poll(() => series('open_connections', 'web'), POLL).toEqual([0]);
    const after = [...(await series('bytes_in_total', 'web')), ...(await series('packets_out_total', 'dns'))];
    expect(after).toEqual(before);
    expect(await series('connections_total', 'web')).toEqual([10]);
    expect(await agent.metrics()).toContain('nodeplane_service_traffic_lost_total 0');
  });

  it('forgets a Service that is removed, and begins anew when it is added again', async () => {
    rmSync(join(manifests, 'web.json'));
    await expect.poll(() => series('connections_total', 'web'), POLL).toEqual([]);
    expect(await series('connections_total', 'dns')).toEqual([4]);
    saveWeb();
    await expect.poll(() => series('connections_total', 'web'), POLL).toEqual([0]);
    const reached = async () => (await client.connect(WEB)).kind;
    await expect.poll(reached, POLL).toBe('answered');
    const [tries] = [tracked(WEB).flows];
    await connect(WEB, 6);
    await expect.poll(() => series('connections_total', 'web'), POLL).toEqual([tries + 6]);
  });

  it('is bounded: the busiest have series, the others one together', async () => {
    const address = (i: number) => `10.96.${1 + Math.floor(i / 200)}.${1 + (i % 200)}`;
    const many = Array.from({ length: MANY }, (_, i) => service(`many-${i}`, address(i), { port: 80 }, 8080));
    save('many', ...many.flat());
    const last = { ip: address(MANY - 1), port: 80 };
    await expect.poll(async () => (await client.connect(last)).kind, POLL).toBe('answered');
    await expect.poll(() => agent.metrics(), POLL).toContain(`nodeplane_service_traffic_hidden ${MANY + 2 - LINES}\n`);
    const sum = async () => (await series('connections_total')).reduce((a, b) => a + b);
    const before = await sum();
    for (const i of [MANY - 2, MANY - 3]) await connect({ ip: address(i), port: 80 }, 5);
    await expect.poll(sum, POLL).toBe(before + 10);
    for (const metric of ['connections_total', 'bytes_in_total', 'open_connections']) {
      expect(await series(metric)).toHaveLength(LINES + 1);
    }
    // It takes the line of one with less to do, from 0 on.
    await expect.poll(() => series('connections_total', `many-${MANY - 2}`), POLL).toEqual([0]);
    await connect({ ip: address(MANY - 2), port: 80 }, 3);
    await expect.poll(() => series('connections_total', `many-${MANY - 2}`), POLL).toEqual([3]);
  });
});
