import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { withPort } from '../../../src/core/index.ts';
import { makeService } from '../../fakes/service-objects.ts';
import { nodeObject } from '../../samples/manifests.ts';
import { type Agent, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, runIn, served, TARGET } from './explain-world.ts';
import { answers, Faults } from './faults.ts';
import { MAC, tunnel } from './tunnel.ts';

// Faults between two nodes: pods reach each other by a VXLAN device in IPv4, as flannel's, and directly in IPv6. What of them shows on
// the client's node is named without a packet; what does not, with --probe, or by the command that is told for the other node.

const world = new ExplainWorld();
const { node, other, far, client, outside } = world;
const faults = new Faults(world);
const VIP = { IPv4: '10.96.0.10', IPv6: 'fd00:96::10' } as const;
const [BOTH, LOCAL, NONE] = ['10.96.0.12', '10.96.0.13', '10.96.0.14'];
const PROBE = { flags: ['--probe'] };
let agentThere: Agent;

const reaches = (family: 'IPv4' | 'IPv6') => answers(client, VIP[family]);
const inet = (chain: string, rule: string) =>
  `table inet theirs { chain ${chain} { type filter hook ${chain} priority 0; ${rule}; } }`;

beforeAll(async () => {
  tunnel(node, 1, 2);
  tunnel(other, 2, 1);
  const objects = [
    ...served('shop/far', VIP.IPv4, [on(other, far.ip(), { targetRef: 'far-1' })]),
    ...served('shop/far6', VIP.IPv6, [on(other, far.ip('IPv6'), { targetRef: 'far-1' })]),
    ...served('shop/both', BOTH, [on(node, world.web.ip()), on(other, other.ip())]),
    ...served('shop/local', LOCAL, [on(other, other.ip())], { internalTrafficPolicy: 'Local' }),
    makeService('shop/none', { clusterIP: NONE }),
    ...served('shop/closed', '10.96.0.11', [on(other, far.ip())], {}, 9999),
    // A machine that forwards nothing.
    nodeObject({ name: 'node-3', ips: outside.ips, podCidrs: ['10.244.3.0/24'] }),
  ];
  await other.serve({ port: 8080 });
  await world.begin(objects);
  agentThere = await other.startAgent({
    manifests: world.manifests,
    flags: ['--proxy-mode', 'nftables', '--cluster-cidr', '10.244.0.0/16,fd00:10:244::/48'],
  });
}, 300_000);
afterAll(async () => {
  await agentThere?.stop();
  await world.end();
  removeAll();
});

/** Of a command for the other node, without the program. */
function wordsThere(line: string): string[] {
  const [, words] = /^nodeplane (.*) {3}# on node-2$/.exec(line) ?? [];
  return words!.replaceAll("'", '').split(' ');
}

describe('pods by their names', () => {
  it('a pod of the other node is found, and its node is told', async () => {
    const { question, remedy } = await faults.expectCode('pod/shop/far-1:8080', client.ip(), 'cannot-tell', {
      verdict: 'unknown',
    });
    expect(question.to).toBe(`pod shop/far-1 (${far.ip()}:8080/tcp)`);
    const there = `nodeplane explain ${far.ip()}:8080 --from ${client.ip()}`;
    expect(remedy).toEqual([`${there}   # on node-2`, `${there} --probe`]);
    expect(await world.ask('pod/shop/far-1:8080', client.ip(), '--probe')).toMatchObject({ verdict: 'works' });
    expect(await answers(client, far.ip(), 8080)).toBe(true);
  });
  it.each(['IPv4', 'IPv6'] as const)(
    'as the source it is translated on its own node, which is told (%s)',
    async (family) => {
      const { question, remedy } = await faults.expectCode(VIP[family], 'pod/shop/far-1', 'cannot-tell', {
        verdict: 'unknown',
      });
      expect(question.from).toBe(`pod shop/far-1 (${far.ip(family)})`);
      const told = wordsThere(remedy[0]!);
      expect(told).toEqual(['explain', withPort(VIP[family], 80), '--from', far.ip(family)]);
      const there = await runIn(other, ...told, '-o', 'json');
      expect(JSON.parse(there.stdout), there.stdout).toMatchObject({ verdict: 'works' });
      expect(await answers(far, VIP[family])).toBe(true);
    },
  );
  it('of a pod of the other node nothing is told but that, whatever is or is not here', async () => {
    const ask = (vip: string) => faults.expectCode(vip, far.ip(), 'cannot-tell', { verdict: 'unknown' });
    for (const vip of [BOTH, LOCAL]) {
      const { remedy } = await ask(vip);
      expect(remedy).toEqual([`nodeplane explain ${vip}:80 --from ${far.ip()}   # on node-2`]);
      for (let tries = 0; tries < 4; tries++) expect(await answers(far, vip)).toBe(true);
    }
    faults.nft(inet('forward', 'drop'), 'inet theirs');
    await ask(LOCAL);
    faults.ip('route del 10.244.2.0/24', 'route replace 10.244.2.0/24 via 10.244.2.0 dev vx0 onlink');
    await ask(LOCAL);
    expect(await answers(far, LOCAL)).toBe(true);
    // What has no endpoints has none there.
    await faults.expectCode(NONE, far.ip(), 'no-endpoints');
    expect(await answers(far, NONE)).toBe(false);
  });
  it('one that no slice has is not known, and near ones are told', async () => {
    const { cause } = await faults.expectCode('pod/shop/far-2:8080', client.ip(), 'cannot-tell', {
      verdict: 'unknown',
    });
    expect(cause).toContain('did you mean shop/far-1?');
    const asSource = await world.ask(VIP.IPv4, 'pod/shop/web-1');
    expect(asSource).toMatchObject({ verdict: 'unknown', code: 'cannot-tell' });
    expect(asSource.cause).toContain('kubectl -n shop get pod web-1 -o wide');
  });
});

describe('nothing is broken', () => {
  it('says up to where the way is known, and the command that it tells says the rest', async () => {
    expect(await reaches('IPv4')).toBe(true);
    const { cause, remedy } = await faults.expectCode(VIP.IPv4, client.ip(), 'cannot-tell', { verdict: 'unknown' });
    expect(cause).toContain(`leaves by vx0 (vxlan) to ${other.ip()}, ${other.ip()} answers on eth0, MTU 1450`);
    const told = `nodeplane explain ${far.ip()}:8080 --from ${client.ip()}`;
    const tried = `nodeplane explain ${VIP.IPv4}:80 --from ${client.ip()} --probe`;
    expect(remedy).toEqual([`${told}   # on node-2`, tried]);
    expect(await runIn(node, ...tried.split(' ').slice(1))).toMatchObject({ exitCode: 0 });
    const there = await runIn(other, ...told.split(' ').slice(1));
    expect(there, there.stdout).toMatchObject({ exitCode: 0 });
  });
  it.each(['IPv4', 'IPv6'] as const)('--probe connects (%s)', async (family) => {
    expect(await world.ask(VIP[family], client.ip(family), '--probe')).toMatchObject({ verdict: 'works', code: null });
    expect(await reaches(family)).toBe(true);
  });
  it('--probe: nobody listens there', async () => {
    await faults.expectCode('10.96.0.11', client.ip(), 'target-port', PROBE);
    expect(await answers(client, '10.96.0.11')).toBe(false);
  });
});

describe('33 no-peer-route', () => {
  it('the route leads to another node', async () => {
    const range = 'fd00:10:244:2::/64';
    faults.ip(
      `-6 route replace ${range} via ${outside.ip('IPv6')}`,
      `-6 route replace ${range} via ${other.ip('IPv6')}`,
    );
    // It might forward them.
    const { warnings } = await world.ask(VIP.IPv6, client.ip('IPv6'));
    expect(warnings.map(({ code }) => code)).toContain('no-peer-route');
    const { cause } = await faults.expectCode(VIP.IPv6, client.ip('IPv6'), 'no-peer-route', PROBE);
    expect(cause).toContain('which is node-3; fd00:10:244:2::2 is on node-2');
    expect(await reaches('IPv6')).toBe(false);
  });
  it('the way back is missing on the other node: told there, and by --probe that something is wrong', async () => {
    faults.ip(
      'route replace unreachable 10.244.1.0/24',
      'route replace 10.244.1.0/24 via 10.244.1.0 dev vx0 onlink',
      other,
    );
    expect(await reaches('IPv4')).toBe(false);
    const { remedy } = await faults.expectCode(VIP.IPv4, client.ip(), 'way-back', PROBE);
    const told = wordsThere(remedy[0]!);
    const there = await runIn(other, ...told, '-o', 'json');
    expect(JSON.parse(there.stdout), there.stdout).toMatchObject({ verdict: 'fails', code: 'way-back' });
  });
  it('the way back is the default route alone: nobody can tell', async () => {
    faults.ip('route del 10.244.1.0/24', 'route replace 10.244.1.0/24 via 10.244.1.0 dev vx0 onlink', other);
    const there = await runIn(other, 'explain', `${far.ip()}:8080`, '--from', client.ip(), '-o', 'json');
    expect(JSON.parse(there.stdout), there.stdout).toMatchObject({ verdict: 'unknown' });
    expect(await reaches('IPv4')).toBe(false);
  });
});

it('no-answer: the firewall of the other node drops what is for its pod', async () => {
  faults.nft(inet('forward', 'tcp dport 8080 drop'), 'inet theirs', other);
  const { cause } = await faults.expectCode(VIP.IPv4, client.ip(), 'no-answer', PROBE);
  expect(cause).toContain('node-2 is reached by vx0');
  expect(await reaches('IPv4')).toBe(false);
});

describe('34 overlay-blocked', () => {
  it.each([
    ['output', 'udp dport 8472 drop'],
    ['input', 'udp dport 8472 drop'],
  ])('a firewall of this node drops the tunnel’s packets (%s)', async (chain, rule) => {
    faults.nft(inet(chain, rule), 'inet theirs');
    const { cause } = await faults.expectCode(VIP.IPv4, client.ip(), 'overlay-blocked');
    expect(cause).toContain(`table inet theirs, chain ${chain}`);
    expect(await reaches('IPv4')).toBe(false);
  });
  it.each(['output', 'input'])(
    'for a pod of the other node, too, which is seen by its own address (%s)',
    async (chain) => {
      const place = `${world.web.ip()}:${TARGET}`;
      const isReached = () => answers(far, world.web.ip(), TARGET);
      await faults.expectWorks(place, far.ip());
      expect(await isReached()).toBe(true);
      faults.nft(inet(chain, 'udp dport 8472 drop'), 'inet theirs');
      const { cause } = await faults.expectCode(place, far.ip(), 'overlay-blocked');
      expect(cause).toContain(`table inet theirs, chain ${chain}`);
      expect(await isReached()).toBe(false);
    },
  );
  it('a firewall of the other node does', async () => {
    faults.nft(inet('input', 'udp dport 8472 drop'), 'inet theirs', other);
    await faults.expectCode(VIP.IPv4, client.ip(), 'cannot-tell', { verdict: 'unknown' });
    const { cause } = await faults.expectCode(VIP.IPv4, client.ip(), 'overlay-blocked', PROBE);
    expect(cause).toContain('node-2 answers at 192.168.50.2, and nothing comes back through vx0 (UDP port 8472)');
    expect(await reaches('IPv4')).toBe(false);
  });
  it('the FDB sends frames to another node', async () => {
    const entry = (to: string) => `fdb replace ${MAC[2]} dev vx0 dst ${to}`;
    faults.run('bridge', entry(outside.ip()), entry(other.ip()));
    const { cause } = await faults.expectCode(VIP.IPv4, client.ip(), 'overlay-blocked');
    expect(cause).toContain('which is node-3; 10.244.2.2 is on node-2');
    expect(await reaches('IPv4')).toBe(false);
  });
  it('the FDB has no entry', async () => {
    const entry = `${MAC[2]} dev vx0 dst ${other.ip()}`;
    faults.run('bridge', `fdb del ${entry}`, `fdb append ${entry}`);
    const { cause } = await faults.expectCode(VIP.IPv4, client.ip(), 'overlay-blocked');
    expect(cause).toContain(`no FDB entry for ${MAC[2]}`);
    expect(await reaches('IPv4')).toBe(false);
  });
  it('the MAC of the other end is an old one: only --probe sees it', async () => {
    const entry = (mac: string) => `neigh replace 10.244.2.0 lladdr ${mac} dev vx0 nud permanent`;
    faults.ip(entry('02:00:00:00:00:99'), entry(MAC[2]!));
    faults.run('bridge', `fdb append 02:00:00:00:00:99 dev vx0 dst ${other.ip()}`, 'fdb del 02:00:00:00:00:99 dev vx0');
    await faults.expectCode(VIP.IPv4, client.ip(), 'overlay-blocked', PROBE);
    expect(await reaches('IPv4')).toBe(false);
  });
});

describe('35 mtu', () => {
  const large = async (family: 'IPv4' | 'IPv6') => {
    // What a pod has learned already is forgotten.
    for (const pod of [client, far])
      pod.namespace.run('ip', family === 'IPv4' ? '-4' : '-6', 'route', 'flush', 'cache');
    const connection = await client.hold({ ip: VIP[family], port: 80 });
    const small = await connection.echo({ timeoutMs: 5000 });
    const { kind } = await connection.echo({ bytes: 20_000, timeoutMs: 1500 });
    await connection.close();
    return [small.kind, kind];
  };

  it('what tells the pod of the smaller MTU is dropped here', async () => {
    expect(await large('IPv4')).toEqual(['answered', 'answered']);
    faults.nft(inet('output', 'icmp type destination-unreachable drop'), 'inet theirs');
    const { cause } = await faults.expectCode(VIP.IPv4, client.ip(), 'mtu', { verdict: 'partly' });
    expect(cause).toContain('vx0 takes 1450');
    expect(await large('IPv4')).toEqual(['answered', 'timeout']);
  });
  it('large packets vanish somewhere on the way: --probe sends one', async () => {
    faults.nft(inet('prerouting', 'ip6 daddr fd00:10:244:2::/64 meta length > 1300 drop'), 'inet theirs', other);
    await faults.expectCode(VIP.IPv6, client.ip('IPv6'), 'mtu', { verdict: 'partly', ...PROBE });
    expect(await large('IPv6')).toEqual(['answered', 'timeout']);
  });
});

describe('34 overlay-blocked, IPv6 in VXLAN over IPv6', () => {
  const isCarried = () => reaches('IPv6');

  beforeAll(() => {
    for (const [at, own, peer] of [
      [node, 1, 2],
      [other, 2, 1],
    ] as const) {
      at.namespace.run('ip', '-6', 'route', 'del', `fd00:10:244:${peer}::/64`);
      tunnel(at, own, peer, 'IPv6');
    }
  });
  afterAll(() => {
    for (const [at, peer] of [
      [node, other],
      [other, node],
    ] as const) {
      at.namespace.run('ip', 'link', 'del', 'vx6');
      at.namespace.run('ip', '-6', 'route', 'add', peer.podCidrs[1]!, 'via', peer.ip('IPv6'));
    }
  });

  it('is not: the way is told, and --probe connects', async () => {
    expect(await isCarried()).toBe(true);
    const { cause } = await faults.expectCode(VIP.IPv6, client.ip('IPv6'), 'cannot-tell', { verdict: 'unknown' });
    expect(cause).toContain(
      `leaves by vx6 (vxlan) to ${other.ip('IPv6')}, ${other.ip('IPv6')} answers on eth0, MTU 1430`,
    );
    expect(await world.ask(VIP.IPv6, client.ip('IPv6'), '--probe')).toMatchObject({ verdict: 'works' });
  });
  it.each([
    ['output', 'meta nfproto ipv6 udp dport 8472 drop'],
    ['input', 'meta nfproto ipv6 udp dport 8472 drop'],
  ])('a firewall of this node drops the tunnel’s packets (%s)', async (chain, rule) => {
    faults.nft(inet(chain, rule), 'inet theirs');
    const { cause } = await faults.expectCode(VIP.IPv6, client.ip('IPv6'), 'overlay-blocked');
    expect(cause).toContain(`table inet theirs, chain ${chain}`);
    expect(await isCarried()).toBe(false);
  });
  it('a firewall of the other node does', async () => {
    faults.nft(inet('input', 'meta nfproto ipv6 udp dport 8472 drop'), 'inet theirs', other);
    const { cause } = await faults.expectCode(VIP.IPv6, client.ip('IPv6'), 'overlay-blocked', PROBE);
    expect(cause).toContain(`node-2 answers at ${other.ip('IPv6')}, and nothing comes back through vx6`);
    expect(await isCarried()).toBe(false);
  });
  it('the FDB has no entry', async () => {
    const entry = `${MAC[2]} dev vx6 dst ${other.ip('IPv6')}`;
    faults.run('bridge', `fdb del ${entry}`, `fdb append ${entry}`);
    const { cause } = await faults.expectCode(VIP.IPv6, client.ip('IPv6'), 'overlay-blocked');
    expect(cause).toContain(`no FDB entry for ${MAC[2]}`);
    expect(await isCarried()).toBe(false);
  });
});

/** The kernel does give up, once nobody sends any more; and forgets that soon, where many namespaces have 128 entries together. */
async function expectGivenUp(family: 'IPv4' | 'IPv6'): Promise<void> {
  const entry = node.namespace.run('ip', 'neigh', 'show', 'to', other.ip(family), 'dev', 'eth0');
  if (entry === '') await reaches(family);
  expect(entry).toContain('FAILED');
}

describe('37 neighbour', () => {
  it.each(['IPv4', 'IPv6'] as const)('the other node is down (%s)', async (family) => {
    const wire = world.lab.wire.namespace;
    wire.run('ip', 'link', 'set', 'port50-2', 'down');
    faults.undo(() => void wire.run('ip', 'link', 'set', 'port50-2', 'up'));
    node.namespace.run('ip', 'neigh', 'flush', 'dev', 'eth0');
    await faults.expectCode(VIP[family], client.ip(family), 'neighbour', PROBE);
    await vi.waitFor(() => expectGivenUp(family), { timeout: patient(20_000), interval: 100 });
    const { cause } = await faults.expectCode(VIP[family], client.ip(family), 'neighbour');
    expect(cause).toContain('(neighbour FAILED, asked for once more)');
    // Whether it answers the kernel's next try is not known.
    const again = await faults.expectCode(VIP[family], client.ip(family), 'cannot-tell', { verdict: 'unknown' });
    expect(again.cause).toMatch(`${other.ip(family)} has not answered on eth0 so far, asked for`);
    expect(await reaches(family)).toBe(false);
  });
  it.each(['IPv4', 'IPv6'] as const)('the other node was down, and is asked for anew (%s)', async (family) => {
    const wire = world.lab.wire.namespace;
    wire.run('ip', 'link', 'set', 'port50-2', 'down');
    const mend = () => void wire.run('ip', 'link', 'set', 'port50-2', 'up');
    faults.undo(mend);
    node.namespace.run('ip', 'neigh', 'flush', 'dev', 'eth0');
    expect(await reaches(family)).toBe(false);
    await vi.waitFor(() => expectGivenUp(family), { timeout: patient(20_000), interval: 100 });
    mend();
    const { cause } = await faults.expectCode(VIP[family], client.ip(family), 'cannot-tell', { verdict: 'unknown' });
    expect(cause).toContain(`${other.ip(family)} answers on eth0`);
    expect(await world.ask(VIP[family], client.ip(family), '--probe')).toMatchObject({ verdict: 'works' });
    expect(await reaches(family)).toBe(true);
  });
  it('works again when all is mended', async () => {
    node.namespace.run('ip', 'neigh', 'flush', 'dev', 'eth0');
    for (const family of ['IPv4', 'IPv6'] as const) {
      expect(await reaches(family)).toBe(true);
      expect(await world.ask(VIP[family], client.ip(family), '--probe')).toMatchObject({ verdict: 'works' });
    }
  });
});
