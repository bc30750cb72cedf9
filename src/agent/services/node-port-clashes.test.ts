import { pino } from 'pino';
import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { sampleNode, samplePort } from '../../../test/samples/sample-plan.ts';
import { parseIp } from '../../core/index.ts';
import type { Protocol } from '../../kube/index.ts';
import type { Listener } from '../../netlink/sock-diag/index.ts';
import type { NodePlan, PlanDelta, ServicePortPlan } from '../../proxy/index.ts';
import { NodePortClashes } from './node-port-clashes.ts';

const OWN = 7;

const at = (address: string, port: number, more: Partial<Listener> = {}): Listener => ({
  port,
  address: parseIp(address),
  dual: false,
  queued: 0,
  queueLimit: 128,
  inode: 1,
  ...more,
});

const planned = (name: string, nodePort: number, protocol: Protocol = 'TCP') =>
  samplePort({ name: `shop/${name}`, clusterIp: '10.96.0.9', nodePort, protocol, local: ['10.1.0.2:8080'] });

function setUp({ node = {}, first = 32_768 }: { node?: Partial<NodePlan>; first?: number } = {}) {
  const clock = new FakeClock();
  const told: string[] = [];
  const lines: string[] = [];
  const ports = new Map<string, ServicePortPlan>();
  const open: Record<Protocol, Listener[]> = { TCP: [], UDP: [], SCTP: [] };
  let reads = 0;
  const clashes = new NodePortClashes({
    nodeName: 'n1',
    families: () => [{ family: 'IPv4', node: sampleNode(node), ports }],
    clock,
    logger: pino({ base: null }, { write: (line: string) => void lines.push(line) }),
    recorder: {
      record: ({ kind, name }, { type, reason, note }) => void told.push(`${kind} ${name} ${type} ${reason}: ${note}`),
    },
    sockets: {
      listeners(protocol) {
        reads += 1;
        return open[protocol];
      },
      own: () => new Set([OWN]),
      localPorts: () => ({ range: `${first} 60999`, has: (port) => first <= port && port <= 60_999 }),
    },
  });
  const change = (delta: Partial<PlanDelta>) => {
    for (const { key } of delta.removed ?? []) ports.delete(key);
    for (const port of delta.upserted ?? []) ports.set(port.key, port);
    clashes.note({ upserted: [], removed: [], ...delta });
  };
  const settle = () => clock.advance(10_000);
  return { told, lines, open, clashes, change, settle, reads: () => reads };
}

it('tells a process that listens on a NodePort once, and again when it came back', async () => {
  const { told, lines, open, change, settle } = setUp();
  const [web, other] = [planned('web', 30080), planned('other', 30081)];
  open.TCP = [at('0.0.0.0', 30080), at('0.0.0.0', 22)];
  change({ upserted: [web] });
  expect(told).toEqual([]);
  await settle();
  expect(told).toHaveLength(1);
  expect(told[0]).toContain('Service web Warning NodePortClash: A process of node "n1" listens on 0.0.0.0:30080 (TCP)');
  expect(told[0]).toContain("ss -ltnp 'sport = :30080'");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: 40, count: 1 }]);
  change({ upserted: [other] });
  await settle();
  expect(told).toHaveLength(1);
  change({ removed: [web] });
  await settle();
  change({ upserted: [web] });
  await settle();
  expect(told).toHaveLength(2);
});

it('reads sockets once for a crowd of changes, and not for one that leaves NodePorts as they are', async () => {
  const { change, settle, reads } = setUp();
  const ports = Array.from({ length: 100 }, (_, index) => planned(`s${index}`, 30_000 + index));
  for (const port of ports) change({ upserted: [port] });
  await settle();
  expect(reads()).toBe(1);
  change({ upserted: [{ ...ports[0]!, affinitySeconds: 9 }], replaced: [ports[0]!] });
  change({ upserted: [planned('inner', 0)] });
  change({ removed: [planned('inner', 0)] });
  await settle();
  expect(reads()).toBe(1);
  change({ upserted: [{ ...ports[0]!, nodePort: 31_000 }], replaced: [ports[0]!] });
  await settle();
  expect(reads()).toBe(2);
});

it.each<[string, Listener, Partial<NodePlan>, boolean]>([
  ['all addresses of IPv6 and IPv4', at('::', 30080, { dual: true }), {}, true],
  ['IPv6 alone', at('::', 30080), {}, false],
  ['an address of the node', at('192.168.50.1', 30080), {}, true],
  ['one that serves NodePorts', at('192.168.50.1', 30080), { nodePortAddresses: [parseIp('192.168.50.1')] }, true],
  ['one that does not', at('192.168.60.1', 30080), { nodePortAddresses: [parseIp('192.168.50.1')] }, false],
  ['loopback', at('127.0.0.1', 30080), {}, false],
  ['loopback, served', at('127.0.0.1', 30080), { loopbackNodePorts: true }, true],
  ['a socket of our own', at('0.0.0.0', 30080, { inode: OWN }), {}, false],
])('%s: told as is right', async (_, listener, node, isTold) => {
  const { told, open, change, settle } = setUp({ node });
  open.TCP = [listener];
  change({ upserted: [planned('web', 30080)] });
  await settle();
  expect(told.length > 0).toBe(isTold);
});

it('knows protocols apart', async () => {
  const { told, open, change, settle } = setUp();
  open.UDP = [at('0.0.0.0', 30080)];
  change({ upserted: [planned('web', 30080), planned('dns', 30053, 'UDP')] });
  await settle();
  expect(told).toEqual([]);
  open.UDP.push(at('0.0.0.0', 30053));
  change({ upserted: [planned('more', 30081)] });
  await settle();
  expect(told).toEqual([expect.stringContaining('Service dns Warning NodePortClash')]);
});

it('tells the Node once that NodePorts are not reserved, until all are', async () => {
  const { told, change, settle } = setUp({ first: 30_050 });
  const [low, high, higher] = [planned('low', 30_000), planned('high', 30_080), planned('higher', 30_081)];
  change({ upserted: [low, high] });
  await settle();
  expect(told).toEqual([
    expect.stringContaining(
      'Node n1 Warning NodePortsNotReserved: NodePorts 30080 lie in net.ipv4.ip_local_port_range',
    ),
  ]);
  change({ upserted: [higher] });
  await settle();
  expect(told).toHaveLength(1);
  change({ removed: [high, higher] });
  await settle();
  change({ upserted: [high] });
  await settle();
  expect(told).toHaveLength(2);
});

it('looks no more after the end', async () => {
  const { clashes, change, settle, reads } = setUp();
  change({ upserted: [planned('web', 30080)] });
  clashes.close();
  await settle();
  expect(reads()).toBe(0);
});
