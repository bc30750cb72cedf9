import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addRoute, createLab, type Host, removeAll, tally } from '../lab.ts';

const lab = createLab();
const server = lab.addClient('server');
const client = lab.addClient('client', { ips: ['192.168.50.200', '192.168.50.201', 'fd00:50::200'] });

beforeAll(async () => {
  await server.serve({ port: 80 });
  await server.serve({ port: 80, protocol: 'UDP' });
});
afterAll(removeAll);

describe.each(['IPv4', 'IPv6'] as const)('%s', (family) => {
  const ip = server.ip(family);

  it.each(['TCP', 'UDP'] as const)('tells who answered over %s and which source address it saw', async (protocol) => {
    const outcome = await client.connect({ ip, port: 80, protocol });
    expect(outcome).toMatchObject({ kind: 'answered', by: 'server', source: client.ip(family) });
  });

  it.each(['TCP', 'UDP'] as const)('is refused over %s where nobody listens', async (protocol) => {
    const outcome = await client.connect({ ip, port: 81, protocol });
    expect(outcome).toMatchObject({ kind: 'refused', errno: 'ECONNREFUSED' });
  });

  it.each(['TCP', 'UDP'] as const)('times out over %s where packets are dropped', async (protocol) => {
    const iptables = family === 'IPv4' ? 'iptables-nft' : 'ip6tables-nft';
    const rule = ['INPUT', '-p', protocol.toLowerCase(), '--dport', '80', '-j', 'DROP'];
    server.namespace.run(iptables, '-A', ...rule);
    const outcome = await client.connect({ ip, port: 80, protocol }, { timeoutMs: 200 });
    server.namespace.run(iptables, '-D', ...rule);
    expect(outcome.kind).toBe('timeout');
    expect(outcome.ms).toBeGreaterThanOrEqual(199);
    expect(await client.connect({ ip, port: 80, protocol })).toMatchObject({ kind: 'answered' });
  });

  it('is unreachable without a route', async () => {
    const outside = family === 'IPv4' ? '203.0.113.1' : '2001:db8::1';
    const outcome = await client.connect({ ip: outside, port: 80 });
    expect(outcome).toMatchObject({ kind: 'unreachable', errno: 'ENETUNREACH' });
  });

  it('times out at an address of the wire that nobody owns, seen from a host that routes there', async () => {
    const node = lab.addNode({ name: `node-${family}` });
    const outside = family === 'IPv4' ? '203.0.113.1' : '2001:db8::1';
    expect((await node.connect({ ip: outside, port: 80 }, { timeoutMs: 200 })).kind).toBe('timeout');
  });
});

it('binds to the source address and port asked for', async () => {
  const from = { sourceIp: '192.168.50.201', sourcePort: 40000 };
  for (const protocol of ['TCP', 'UDP'] as const) {
    const outcome = await client.connect({ ip: server.ip(), port: 80, protocol }, from);
    expect(outcome).toMatchObject({ kind: 'answered', source: '192.168.50.201', sourcePort: 40000 });
  }
});

it('rejects what is a mistake of the test, not of the network', async () => {
  await expect(client.connect({ ip: server.ip(), port: 80 }, { sourceIp: '192.0.2.1' })).rejects.toThrow(
    /client: connect: .*EADDRNOTAVAIL/,
  );
  await expect(server.serve({ port: 80 })).rejects.toThrow(/EADDRINUSE/);
  expect(() => client.namespace.run('ip', 'link', 'show', 'none')).toThrow(/none/);
});

it('counts many connections by server', async () => {
  const { answers, failures, sources } = tally(await client.connectMany({ ip: server.ip(), port: 80 }, 50));
  expect(answers).toEqual({ server: 50 });
  expect(failures).toEqual({});
  expect([...sources]).toEqual(['192.168.50.200']);
  expect(tally(await client.connectMany({ ip: server.ip(), port: 81 }, 5)).failures).toEqual({ refused: 5 });
});

it('answers curl', () => {
  const said = client.namespace.run('curl', '-s', '-g', `http://[${server.ip('IPv6')}]/`);
  expect(said).toMatch(/^server answers fd00:50::200 port \d+\n$/);
});

it('fetches by HTTP from inside a namespace', async () => {
  const response = await client.httpGet(`http://${server.ip()}/`);
  expect(response.status).toBe(200);
  expect(response.body).toMatch(/^server answers 192\.168\.50\.200 port/);
  await expect(client.httpGet(`http://${server.ip()}:81/`)).rejects.toThrow(/ECONNREFUSED/);
});

describe('what lasts', () => {
  it('holds a connection, and says when it was broken', async () => {
    await server.serve({ port: 90 });
    const held = await client.hold({ ip: server.ip(), port: 90 });
    expect(held.outcome).toMatchObject({ kind: 'answered', by: 'server' });
    expect(await held.echo()).toMatchObject({ kind: 'answered', by: 'server' });
    expect(await held.echo()).toMatchObject({ kind: 'answered', by: 'server' });
    await server.stopServing({ port: 90 });
    expect(await held.echo()).toMatchObject({ kind: 'broken' });
    expect(await client.connect({ ip: server.ip(), port: 90 })).toMatchObject({ kind: 'refused' });
    await held.close();
  });

  it('keeps a load at its rate and reports the last answer of each server', async () => {
    await server.serve({ port: 91 });
    const begun = Date.now();
    const load = await client.startLoad({ ip: server.ip(), port: 91 }, { perSecond: 200 });
    await answersOver(load, 60);
    await server.stopServing({ port: 91 });
    const stoppedAt = Date.now();
    while ((await load.report()).failures.length < 20);
    const report = await load.stop();
    const took = (Date.now() - begun) / 1000;
    expect(report.started).toBeGreaterThan(79);
    expect(report.started).toBeLessThanOrEqual(took * 200 + 1);
    expect(report.answered + report.failures.length).toBe(report.started);
    expect(report.servers.server?.answers).toBe(report.answered);
    expect(report.servers.server?.lastStartedAt).toBeGreaterThanOrEqual(begun);
    expect(report.servers.server?.lastStartedAt).toBeLessThanOrEqual(stoppedAt);
    expect(new Set(report.failures.map(({ outcome }) => outcome.kind))).not.toContain('timeout');
  });

  it('begins ten times as much at ten times the rate', async () => {
    const target = { ip: server.ip(), port: 80 };
    const slow = await client.startLoad(target, { perSecond: 80 });
    const fast = await client.startLoad(target, { perSecond: 800 });
    await answersOver(fast, 400);
    const [few, many] = [await slow.stop(), await fast.stop()];
    expect(many.started / few.started).toBeGreaterThan(5);
    expect(many.started / few.started).toBeLessThan(15);
  });
});

it('ends with its thread, whatever its connections are at', async () => {
  const brief = lab.addClient('brief');
  // Some of their clients have just ended them when the server does.
  for (let round = 0; round < 20; round++) {
    await brief.serve({ port: 80 });
    const connections = client.connectMany({ ip: brief.ip(), port: 80 }, 400, { concurrency: 32 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    await brief.stopServing({ port: 80 });
    await connections;
  }
  await brief.remove();
});

describe('the wire between two nodes', () => {
  it('carries traffic between nodes, and to the other node’s pod range', async () => {
    const [a, b] = [lab.addNode({ name: 'node-a' }), lab.addNode({ name: 'node-b' })];
    await b.serve({ port: 7000 });
    expect(await a.connect({ ip: b.ip(), port: 7000 })).toMatchObject({ by: 'node-b', source: a.ip() });
    expect(await a.connect({ ip: b.ip('IPv6'), port: 7000 })).toMatchObject({ by: 'node-b', source: a.ip('IPv6') });
    // No pod is needed to see the route: node-b itself owns an address of its pod range.
    const inside = b.podCidrs[0]!.replace('.0/24', '.5');
    b.namespace.run('ip', 'address', 'add', `${inside}/32`, 'dev', 'lo');
    expect(await a.connect({ ip: inside, port: 7000 })).toMatchObject({ kind: 'answered', by: 'node-b' });
    await routed(client, a.podCidrs[0]!, a);
  });
});

/** A client reaches a range behind a node only after being given the route. */
async function routed(from: Host, cidr: string, via: Host): Promise<void> {
  const inside = cidr.replace('.0/24', '.5');
  via.namespace.run('ip', 'address', 'add', `${inside}/32`, 'dev', 'lo');
  await via.serve({ port: 7000 });
  expect(await from.connect({ ip: inside, port: 7000 })).toMatchObject({ kind: 'unreachable' });
  addRoute(from, cidr, via);
  expect(await from.connect({ ip: inside, port: 7000 })).toMatchObject({ kind: 'answered', by: via.name });
}

async function answersOver(load: { report(): Promise<{ answered: number }> }, count: number): Promise<void> {
  while ((await load.report()).answered < count);
}
