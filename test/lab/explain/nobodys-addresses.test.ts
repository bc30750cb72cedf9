import { afterAll, beforeAll, expect, it } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import { removeAll } from '../lab.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';

// Addresses that are of all hosts of a link, of every host, or of nobody who is known.

const world = new ExplainWorld();
const faults = new Faults(world);
const { node, other, web, client } = world;
const VIP = 'fd00:96::10';
const VIP4 = '10.96.0.10';
/** Of a load balancer that is a machine of its own. */
const BALANCER = '203.0.113.80';
const ALL = { ofNodes: '192.168.50.255', ofPods: '10.244.1.255' } as const;

beforeAll(async () => {
  const status = { loadBalancer: { ingress: [{ ip: BALANCER, ipMode: 'Proxy' as const }] } };
  await node.serve({ port: TARGET });
  await other.serve({ port: TARGET, protocol: 'UDP' });
  await world.begin([
    ...served('shop/web6', VIP, [on(node, web.ip('IPv6'))]),
    ...served('shop/balanced', '10.96.0.11', [on(node, web.ip())], { type: 'LoadBalancer' }).map((object) =>
      object.kind === 'Service' ? { ...object, status } : object,
    ),
    ...served('shop/web', VIP4, [on(node, web.ip())], {
      type: 'NodePort',
      ports: [{ port: 80, nodePort: 30080 }],
    }),
  ]);
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

/** How many hosts answer a datagram to all of a link. */
function heard(from: typeof node | typeof client, to: string): number {
  const ask = `import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.settimeout(1)
s.sendto(b'x', ('${to}', ${TARGET}))
print(len(s.recvfrom(100)))`;
  return from.namespace.run('python3', '-c', ask).trim() === '' ? 0 : 1;
}

it.each(['ofNodes', 'ofPods'] as const)(
  'datagrams to all hosts of a link may be answered, connections are not (%s)',
  async (which) => {
    const [from, source] = which === 'ofNodes' ? ([node, 'node'] as const) : ([client, client.ip()] as const);
    const to = ALL[which];
    expect(heard(from, to)).toBe(1);
    const [answer] = await world.askHere([{ destination: `${to}:${TARGET}`, source, protocol: 'udp' }]);
    expect(answer, answer!.cause).toMatchObject({ verdict: 'unknown' });
    expect(answer!.cause).toContain(`${to} is a broadcast address`);
    const tcp = await world.ask(`${to}:${TARGET}`, source);
    expect(tcp, tcp.cause).toMatchObject({ verdict: 'fails' });
    expect(tcp.cause).toContain(`${to} is a broadcast address`);
    expect(await answers(from, to, TARGET)).toBe(false);
  },
);

it('nobody connects from such an address', async () => {
  const { cause } = await faults.expectCode(`${node.ip()}:${TARGET}`, ALL.ofNodes, 'way-back');
  expect(cause).toContain('is a broadcast address');
});

it('from ::1 it is not told that answers of others arrive', async () => {
  const { kind } = await node.connect({ ip: VIP, port: 80 }, { sourceIp: '::1', timeoutMs: 1500 });
  expect(kind).toBe('timeout');
  expect(await world.ask(`[${VIP}]:80`, '::1')).toMatchObject({ verdict: 'unknown' });
  await faults.expectWorks(`[${node.ip('IPv6')}]:${TARGET}`, '::1');
  const own = { ip: node.ip('IPv6'), port: TARGET };
  expect(await node.connect(own, { sourceIp: '::1' })).toMatchObject({ kind: 'answered' });
});

it('a loopback address is no source of what goes to an endpoint', async () => {
  const here = { ip: node.ip(), port: 30080 };
  const attempt = node.connect(here, { sourceIp: '127.0.0.1', timeoutMs: 1500 });
  const kind = await attempt.then(
    (outcome) => outcome.kind,
    () => 'refused',
  );
  expect(kind).not.toBe('answered');
  const { cause } = await faults.expectCode(`${here.ip}:${here.port}`, '127.0.0.1', 'no-peer-route');
  expect(cause).toContain('a loopback address is no source of what leaves the node');
});

it.each(['IPv4', 'IPv6'] as const)(
  'of an address that no pod of the range has, pods and leases are shown (%s)',
  async (family) => {
    const ip = family === 'IPv4' ? '10.244.1.222' : 'fd00:10:244:1::dead';
    const destination = withPort(ip, TARGET);
    const { cause, remedy } = await world.ask(destination, client.ip(family));
    expect(cause).toContain(
      `${destination} is of the range of this node's pods, and no pod with this address was found`,
    );
    expect(remedy[0]).toMatch(/^kubectl get pods -A .* \| grep -wF /);
    expect(remedy[0]).toContain(ip);
    expect(await world.ask(destination, client.ip(family), '--probe')).toMatchObject({
      verdict: 'fails',
    });
    expect(await answers(client, ip, TARGET)).toBe(false);
  },
);

it('an address elsewhere is of no node that could be asked, and can be tried', async () => {
  const ip = '203.0.113.77';
  const { cause, remedy } = await world.ask(`${ip}:53`, client.ip());
  expect(cause).toContain(`${ip}:53 is of no Service, pod or node that is known here`);
  expect(remedy).toEqual([`ip route get ${ip}`, `nodeplane explain ${ip}:53 --from ${client.ip()} --probe`]);
});

it('a load balancer that takes connections itself (ipMode Proxy) is told as that, and no node is it', async () => {
  const [answer] = await world.askHere([{ destination: `${BALANCER}:80`, source: client.ip() }]);
  expect(answer, answer!.cause).toMatchObject({ verdict: 'unknown' });
  expect(answer!.cause).toContain(
    `${BALANCER}:80 is of the load balancer of shop/balanced, which takes connections itself and makes its own to nodes or pods (ipMode Proxy)`,
  );
  expect(answer!.remedy).toContain('kubectl -n shop get service balanced -o yaml');
  expect(await answers(client, BALANCER)).toBe(false);
});
