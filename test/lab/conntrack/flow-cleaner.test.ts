import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FlowCleaner, openFlowTable } from '../../../src/agent/index.ts';
import { type IpFamily, parseIp, systemClock } from '../../../src/core/index.ts';
import type { Netlink } from '../../../src/netlink/index.ts';
import { nodePortAddressTest, type PlanDelta, type ServicePortPlan } from '../../../src/proxy/index.ts';
import { IptablesDataplane } from '../../../src/proxy/iptables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { sampleNode, samplePlan, samplePort } from '../../samples/sample-plan.ts';
import { execIn, useOwnLockFile } from '../iptables/fixtures.ts';
import { addRoute, createLab, type Host, type LabNode, removeAll } from '../lab.ts';
import { openNetfilter, udpFlows } from './flows.ts';

// UDP clients that keep their port, endpoints that change under them, and flows that are none of the proxy's business.

useOwnLockFile();
afterAll(removeAll);

const NODE_PORT = 30053;
const TARGET_PORT = 5353;
const CIDRS = { IPv4: '10.96.0.0/16', IPv6: 'fd00:96::/64' } as const;
const VIPS = { IPv4: ['10.96.0.10', '10.96.0.11'], IPv6: ['fd00:96::10', 'fd00:96::11'] } as const;

let node: LabNode;
let pods: Record<'a' | 'b', Host>;
let client: Host;
let foreign: Host;
let netlink: Netlink;

beforeAll(async () => {
  const lab = createLab();
  node = lab.addNode({ name: 'node-1' });
  pods = { a: node.addPod('a'), b: node.addPod('b') };
  client = lab.addClient('client');
  foreign = lab.addClient('foreign');
  for (const cidr of Object.values(CIDRS)) addRoute(client, cidr, node);
  for (const cidr of node.podCidrs) addRoute(foreign, cidr, node);
  for (const pod of Object.values(pods)) await pod.serve({ port: TARGET_PORT, protocol: 'UDP' });
  await foreign.serve({ port: NODE_PORT, protocol: 'UDP' });
  netlink = openNetfilter(node.namespace);
  return () => netlink.close();
});

describe.each(['IPv4', 'IPv6'] as IpFamily[])('%s: after a change', (family) => {
  const plan = samplePlan(family, sampleNode(), []);
  const ports = plan.ports as Map<string, ServicePortPlan>;
  let dataplane: IptablesDataplane;
  let cleaner: FlowCleaner;
  let isNodePortAddress: ReturnType<typeof nodePortAddressTest>;

  const service = (n: 0 | 1, ...backends: ('a' | 'b')[]) => {
    const remote = backends.map((name) => {
      const ip = pods[name].ip(family);
      return family === 'IPv4' ? `${ip}:${TARGET_PORT}` : `[${ip}]:${TARGET_PORT}`;
    });
    const common = { name: `test/s${n}:main`, protocol: 'UDP', clusterIp: VIPS[family][n], port: 53, remote } as const;
    return samplePort({ ...common, ...(n === 0 && { nodePort: NODE_PORT }) });
  };
  /** A sync as the proxy makes it, then the cleaning. */
  const sync = async (delta: PlanDelta) => {
    for (const port of delta.removed) ports.delete(port.key);
    for (const port of delta.upserted) ports.set(port.key, port);
    cleaner.note(delta);
    await dataplane.resync(plan);
    return cleaner.clean(() => isNodePortAddress);
  };
  const ask = async (host: Host, ip: string, port: number, sourcePort: number) => {
    const outcome = await host.connect({ ip, port, protocol: 'UDP' }, { sourcePort });
    return outcome.kind === 'answered' ? outcome.by : outcome.kind;
  };
  const viaClusterIp = () => ask(client, VIPS[family][0], 53, 4001);
  const viaNodePort = () => ask(client, node.ip(family), NODE_PORT, 4002);
  const viaOther = () => ask(client, VIPS[family][1], 53, 4003);
  /** From a pod to the NodePort's number on a machine outside. */
  const throughNode = () => ask(pods.b, foreign.ip(family), NODE_PORT, 4004);
  const idOf = (clientPort: number) =>
    [...udpFlows(netlink, family)].find(([text]) => text.startsWith(`${clientPort} >`))?.[1];

  beforeAll(() => {
    // ICMP port unreachable for each refusal, not one a second.
    node.namespace.run('sysctl', '-qw', 'net.ipv4.icmp_ratelimit=0', 'net.ipv6.icmp.ratelimit=0');
    const exec = execIn(node.namespace);
    dataplane = new IptablesDataplane({ family, variant: 'nft', exec, dropInvalid: true });
    const table = inNetns(node.namespace.path, openFlowTable);
    cleaner = new FlowCleaner({ family, table, clock: systemClock });
    isNodePortAddress = nodePortAddressTest({ nodePortAddresses: 'all', localAddresses: node.ips.map(parseIp) });
    return () => table.close();
  });

  it('flows move to the new endpoint; those of other Services and of other hosts stay as they are', async () => {
    await sync({ upserted: [service(0, 'a'), service(1, 'a')], removed: [] });
    expect([await viaClusterIp(), await viaNodePort(), await viaOther(), await throughNode()]).toEqual([
      ...['a', 'a', 'a'],
      'foreign',
    ]);
    const [other, through] = [idOf(4003), idOf(4004)];
    expect([other, through]).toEqual([expect.any(Number), expect.any(Number)]);

    expect(await sync({ upserted: [service(0, 'b')], removed: [] })).toMatchObject({ deleted: 2 });
    expect([await viaClusterIp(), await viaNodePort(), await viaOther()]).toEqual(['b', 'b', 'a']);
    expect([idOf(4003), idOf(4004)]).toEqual([other, through]);
  });

  it('flows to an endpoint that stays go on', async () => {
    const before = [idOf(4001), idOf(4002)];
    expect(await sync({ upserted: [service(0, 'a', 'b')], removed: [] })).toMatchObject({ deleted: 0 });
    expect([idOf(4001), idOf(4002)]).toEqual(before);
    expect(before).toEqual([expect.any(Number), expect.any(Number)]);
  });

  it('nobody is led to the last endpoint when it is gone', async () => {
    expect(await sync({ upserted: [service(0)], removed: [] })).toMatchObject({ deleted: 2 });
    expect([await viaClusterIp(), await viaNodePort()]).toEqual(['refused', 'refused']);
  });

  it('flows that began before there was anybody find the first endpoint', async () => {
    await sync({ upserted: [], removed: [service(0)] });
    // The wire drops it: the flow is tracked as it is, not translated.
    expect(await viaClusterIp()).toBe('timeout');
    expect(idOf(4001)).toEqual(expect.any(Number));
    expect(await sync({ upserted: [service(0, 'b')], removed: [] })).toMatchObject({ deleted: 1 });
    expect(await viaClusterIp()).toBe('b');
  });

  it('flows of a Service that is removed end', async () => {
    await viaNodePort();
    expect(await sync({ upserted: [], removed: [service(0, 'b')] })).toMatchObject({ deleted: 2 });
    expect([await viaClusterIp(), await viaNodePort()]).toEqual(['timeout', 'refused']);
    expect(await viaOther()).toBe('a');
  });
});
