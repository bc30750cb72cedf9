import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseIp } from '../../../src/core/index.ts';
import type { CauseCode } from '../../../src/explain/index.ts';
import { Nftables } from '../../../src/netlink/nftables/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { type Host, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers as answersTo, Faults, keepSocket, paste, vethOf } from './faults.ts';

// What is broken in the kernel, the objects being in order: each cause is made, named, held against a packet, and mended.

const world = new ExplainWorld();
const { node, other, web, web2, far, client, outside } = world;
const VIP = { IPv4: '10.96.0.10', IPv6: 'fd00:96::10' } as const;
const SOLO = '10.96.0.11';
/** An address of the wire where nobody is. */
const NOBODY = '192.168.50.77';
/** Longer than a question takes, so that what is broken is not mended meanwhile. */
const MIN_SYNC_SECONDS = 20;

const faults = new Faults(world);

beforeAll(async () => {
  const config = join(world.lab.folder, 'config.yaml');
  writeFileSync(
    config,
    `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: 10.244.0.0/16,fd00:10:244::/48
nftables: { minSyncPeriod: ${MIN_SYNC_SECONDS}s }
`,
  );
  const udp = { ports: [{ port: 53, protocol: 'UDP' as const }] };
  await world.begin(
    [
      ...served('shop/web', VIP.IPv4, [on(node, web.ip()), on(node, web2.ip())]),
      ...served('shop/web6', VIP.IPv6, [on(node, web.ip('IPv6')), on(node, web2.ip('IPv6'))]),
      ...served('shop/solo', SOLO, [on(node, web.ip())]),
      ...served('shop/far', '10.96.0.12', [on(other, far.ip())]),
      ...served('shop/far6', 'fd00:96::12', [on(other, far.ip('IPv6'))]),
      ...served('shop/nobody', '10.96.0.13', [{ addresses: [NOBODY], nodeName: 'node-9' }]),
      ...served('shop/host', '10.96.0.14', [on(node, node.ip())], {}, 9000),
      ...served('shop/sticky', '10.96.0.15', [on(node, web.ip()), on(node, web2.ip())], {
        sessionAffinity: 'ClientIP',
      }),
      ...served('shop/dns', '10.96.0.16', [on(node, web.ip())], udp),
      ...served('shop/full', '10.96.0.17', [on(node, web.ip())], {}, 8090),
      ...served('shop/port', '10.96.0.18', [on(node, web.ip())], {
        type: 'NodePort',
        ports: [{ port: 80, nodePort: 30080 }],
      }),
    ],
    '--config',
    config,
  );
  await node.serve({ port: 9000 });
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

const answers = (ip: string, port = 80, from: Host = client) => answersTo(from, ip, port);
/** Asks for the code, and expects what packets say. */
const expectCode = (destination: string, from: string, code: CauseCode, verdict: 'fails' | 'partly' = 'fails') =>
  faults.expectCode(destination, from, code, { verdict });

describe.each(['IPv4', 'IPv6'] as const)('%s', (family) => {
  const table = 'inet theirs';
  const from = client.ip(family);
  const base = (hook: string, rule: string) =>
    `table ${table} { chain ${hook} { type filter hook ${hook} priority 10; ${rule}; } }`;

  it('foreign-drop: rules of others drop the packet, or its answer', async () => {
    faults.nft(base('forward', 'tcp dport 8080 drop'), table);
    const answer = await expectCode(VIP[family], from, 'foreign-drop');
    expect(answer.cause).toContain('table inet theirs, chain forward');
    expect(await answers(VIP[family])).toBe(false);
  });
  it('foreign-drop: rules of others drop the answer', async () => {
    faults.nft(base('forward', 'tcp sport 8080 drop'), table);
    expect((await expectCode(VIP[family], from, 'foreign-drop')).cause).toContain('answers are dropped');
    expect(await answers(VIP[family])).toBe(false);
  });
  it('cannot tell past what nobody simulates', async () => {
    faults.nft(base('forward', 'tcp dport 8080 limit rate over 1000/second drop'), table);
    expect(await world.ask(VIP[family], from)).toMatchObject({ verdict: 'unknown', code: 'cannot-tell' });
  });
  it('no-peer-route: the node of the endpoint cannot be reached', async () => {
    const [version, range] = family === 'IPv4' ? ['-4', '10.244.2.0/25'] : ['-6', 'fd00:10:244:2::/65'];
    faults.ip(
      `${version} route add unreachable ${range} metric 1`,
      `${version} route del unreachable ${range} metric 1`,
    );
    await expectCode(family === 'IPv4' ? '10.96.0.12' : 'fd00:96::12', from, 'no-peer-route');
    expect(await answers(family === 'IPv4' ? '10.96.0.12' : 'fd00:96::12')).toBe(false);
  });
  it('forwarding: the node forwards nothing', async () => {
    faults.sysctl(family === 'IPv4' ? 'net.ipv4.ip_forward' : 'net.ipv6.conf.all.forwarding', '0');
    const vip = family === 'IPv4' ? VIP.IPv4 : 'fd00:96::12';
    await expectCode(vip, from, 'forwarding');
    expect(await answers(vip)).toBe(false);
  });
  it('drift: somebody removed what the agent wrote', async () => {
    const map = `${family === 'IPv4' ? 'ip' : 'ip6'} nodeplane endpoints`;
    const count = () => world.run('nft', '-j', 'list', 'map', ...map.split(' ')).length;
    const whole = count();
    // The first time it is mended at once, the second time only when the shortest time between syncs is over.
    world.run('nft', 'flush', 'map', ...map.split(' '));
    await expect.poll(count, { timeout: patient(40_000) }).toBe(whole);
    world.run('nft', 'flush', 'map', ...map.split(' '));
    const { remedy } = await expectCode(VIP[family], from, 'drift');
    expect(await answers(VIP[family])).toBe(false);
    paste(node, remedy[0]!);
    expect(count()).toBe(whole);
    expect(await world.ask(VIP[family], from)).toMatchObject({ verdict: 'works' });
    expect(await answers(VIP[family])).toBe(true);
  });
});

it('old-proxy: rules of another proxy are in front of ours', async () => {
  faults.nft(
    `table ip kube-proxy { chain nat-prerouting { type nat hook prerouting priority -110; ip daddr ${SOLO} tcp dport 80 dnat to 10.244.1.200:8080; } }`,
    'ip kube-proxy',
  );
  await expectCode(SOLO, client.ip(), 'old-proxy');
  expect(await answers(SOLO)).toBe(false);
});

it('affinity: the client is held at an endpoint that is gone', async () => {
  const own = inNetns(node.namespace.path, () => Nftables.open());
  const set = { family: 'ip', table: 'nodeplane', set: 'affinity-shop/sticky/tcp' } as const;
  const data = Uint8Array.of(...parseIp('10.244.1.200').bytes, 8080 >> 8, 8080 & 255, 0, 0);
  const object = { kind: 'elements', ...set, elements: [{ key: parseIp(client.ip()).bytes, data }] } as const;
  faults.undo(() => own.close());
  const hold = () => own.commit([{ operation: 'add', object }]);
  const held = () => own.listElements({ kind: 'set', family: 'ip', table: set.table, name: set.set }).length;
  // As above: mended at once the first time, later the second time.
  hold();
  await expect.poll(held, { timeout: patient(40_000) }).toBe(0);
  hold();
  const { remedy } = await expectCode('10.96.0.15', client.ip(), 'affinity');
  expect(await answers('10.96.0.15')).toBe(false);
  paste(node, remedy[0]!);
  expect(held()).toBe(0);
});

describe('tracked flows overrule the rules', () => {
  /** The client soon gets the same port again, until what is returned is called. */
  const fewPorts = (port: number): (() => void) => {
    const set = (range: string) => void client.namespace.run('sysctl', '-qw', `net.ipv4.ip_local_port_range=${range}`);
    const before = client.namespace.run('sysctl', '-n', 'net.ipv4.ip_local_port_range').trim();
    faults.undo(() => set(before));
    set(`${port} ${port + 9}`);
    return () => set(before);
  };
  it('stale-udp: to what is no endpoint', async () => {
    await world.atRest();
    const dnat = `ip daddr 10.96.0.16 udp dport 53 dnat to ${far.ip()}:8080`;
    faults.nft(`table ip theirs { chain nat { type nat hook prerouting priority -110; ${dnat}; } }`, 'ip theirs');
    const options = { sourcePort: 40_053, timeoutMs: patient(300) };
    const target = { ip: '10.96.0.16', port: 53, protocol: 'UDP' } as const;
    const send = () => client.connect(target, options);
    await send();
    faults.mend();
    const release = await keepSocket(faults, client, target, options.sourcePort);
    const { remedy } = await expectCode('svc/shop/dns', client.ip(), 'stale-udp', 'partly');
    await release();
    expect(remedy[0]).toContain('conntrack -D -w 0 -p udp');
    expect(await send()).toMatchObject({ by: 'far' });
    world.run('conntrack', ...remedy[0]!.split(' ').slice(1));
    expect(await send()).toMatchObject({ by: 'web' });
  });
  it('recycled-ip: to an address that another pod has by now', async () => {
    const [gone, sourcePort] = ['10.244.2.200', 40_123];
    const dnat = `ip daddr ${SOLO} tcp dport 80 dnat to ${gone}:8080`;
    faults.nft(`table ip theirs { chain nat { type nat hook prerouting priority -110; ${dnat}; } }`, 'ip theirs');
    // Nothing waits there for whoever gets the address.
    faults.ip(`neigh add ${gone} lladdr 02:00:00:00:00:99 dev cni0 nud permanent`, `neigh del ${gone} dev cni0`, other);
    await client.connect({ ip: SOLO, port: 80 }, { sourcePort, timeoutMs: 300 });
    faults.mend();
    faults.ip(`address add ${gone}/24 dev eth0`, `address del ${gone}/24 dev eth0`, far);
    const widen = fewPorts(sourcePort);
    const { remedy } = await expectCode('svc/shop/solo', client.ip(), 'recycled-ip', 'partly');
    widen();
    expect(await client.connect({ ip: SOLO, port: 80 }, { sourcePort })).toMatchObject({ by: 'far' });
    world.run('conntrack', ...remedy[0]!.split(' ').slice(1));
    expect(await client.connect({ ip: SOLO, port: 80 }, { sourcePort })).toMatchObject({ by: 'web' });
  });
  it('untranslated: begun before there was a Service', async () => {
    await world.atRest();
    const sourcePort = 40_030;
    const again = () => client.connect({ ip: SOLO, port: 80 }, { sourcePort, timeoutMs: 1500 });
    faults.leaveUntranslated(client, SOLO, sourcePort);
    const widen = fewPorts(sourcePort);
    const { remedy } = await expectCode('svc/shop/solo', client.ip(), 'untranslated', 'partly');
    widen();
    expect(await answers(SOLO)).toBe(true);
    expect((await again()).kind).not.toBe('answered');
    world.run('conntrack', ...remedy[0]!.split(' ').slice(1));
    expect(await again()).toMatchObject({ by: 'web' });
  });
});

it('rp-filter: packets come in by another interface than answers leave by', async () => {
  faults.sysctl('net.ipv4.conf.all.rp_filter', '1');
  faults.ip(`route add ${client.ip()}/32 dev eth0`, `route del ${client.ip()}/32 dev eth0`);
  await expectCode(VIP.IPv4, client.ip(), 'rp-filter');
  expect(await answers(VIP.IPv4)).toBe(false);
});

it('rp-filter: there is no way back at all, and to be less strict is no remedy', async () => {
  faults.sysctl('net.ipv4.conf.all.rp_filter', '2');
  faults.ip(`route add unreachable ${client.ip()}`, `route del unreachable ${client.ip()}`);
  const { cause, remedy } = await expectCode(VIP.IPv4, client.ip(), 'rp-filter');
  expect(cause).toContain('no way back');
  expect(remedy.join()).not.toContain('rp_filter=2');
  expect(await answers(VIP.IPv4)).toBe(false);
});

it('link-down: the pair of the endpoint', async () => {
  faults.ip(`link set ${vethOf(node, web)} down`, `link set ${vethOf(node, web)} up`);
  await expectCode(SOLO, client.ip(), 'link-down');
  expect((await expectCode(VIP.IPv4, client.ip(), 'link-down', 'partly')).cause).toContain('1 of 2 endpoints');
  expect(await answers(SOLO)).toBe(false);
});

it('neighbour: nobody has the address of the endpoint', async () => {
  expect(await answers('10.96.0.13', 80)).toBe(false);
  await new Promise((resolve) => setTimeout(resolve, 3500));
  await expectCode('svc/shop/nobody', client.ip(), 'neighbour');
});

it('duplicate-ip: another has the address of the endpoint', async () => {
  faults.ip(
    `neigh replace ${web.ip()} lladdr 02:00:00:00:00:99 dev cni0 nud permanent`,
    `neigh del ${web.ip()} dev cni0`,
  );
  await expectCode(SOLO, client.ip(), 'duplicate-ip');
  expect(await answers(SOLO)).toBe(false);
});

it('an entry for another that may be asked about anew does not say that nothing arrives', async () => {
  faults.ip(`neigh replace ${web.ip()} lladdr 02:00:00:00:00:99 dev cni0 nud stale`, `neigh flush dev cni0`);
  const cause = expect.stringContaining('02:00:00:00:00:99 when this node heard of it last');
  expect(await world.ask(SOLO, client.ip())).toMatchObject({ verdict: 'unknown', cause });
  const { kind } = await client.connect({ ip: SOLO, port: 80 }, { timeoutMs: 30_000 });
  expect(kind).toBe('answered');
});

it('two pods with one address, of which one serves: whom the node finds is not known', async () => {
  faults.ip(`address add ${web.ip()}/32 dev eth0`, `address del ${web.ip()}/32 dev eth0`, client);
  world.run('ip', 'neigh', 'flush', 'dev', 'cni0');
  const cause = expect.stringContaining('which of them gets what comes is not known');
  expect(await world.ask(SOLO, 'node')).toMatchObject({ verdict: 'unknown', cause });
  await web.stopServing({ port: TARGET });
  faults.undo(() => void web.serve({ port: TARGET }));
  await expectCode(SOLO, 'node', 'duplicate-ip');
  expect(await answers(SOLO, 80, node)).toBe(false);
});

it('a neighbour entry for all of a link, which datagrams arrive by, does not say that nothing does', async () => {
  faults.ip(
    `neigh replace ${web.ip()} lladdr ff:ff:ff:ff:ff:ff dev cni0 nud permanent`,
    `neigh del ${web.ip()} dev cni0`,
  );
  const cause = expect.stringContaining('ff:ff:ff:ff:ff:ff');
  expect(await world.ask(SOLO, client.ip())).toMatchObject({ verdict: 'unknown', cause });
});

it('a pod whose address this node takes for one of its own is not said to be reached', async () => {
  faults.ip(`route add local ${web.ip()}/32 dev lo table local`, `route del local ${web.ip()}/32 dev lo table local`);
  const cause = expect.stringContaining('for an address of its own, by a route');
  expect(await world.ask(`${web.ip()}:${TARGET}`, client.ip())).toMatchObject({ verdict: 'unknown', cause });
});

it('whether a link is enough that takes less than TCP sends is not known', async () => {
  faults.ip('link set eth0 mtu 68', 'link set eth0 mtu 1500', web);
  const cause = expect.stringContaining('less than TCP sends');
  expect(await world.ask(SOLO, client.ip())).toMatchObject({ verdict: 'unknown', cause });
});

it('whether there is a client at an address of pods that no pod has is not known', async () => {
  const cause = expect.stringContaining('no pod on cni0 is known to have 10.244.1.77');
  expect(await world.ask('node:30080', '10.244.1.77')).toMatchObject({ verdict: 'unknown', cause });
});

it('hairpin: a pod does not reach itself', async () => {
  expect(await world.ask(SOLO, web.ip())).toMatchObject({ verdict: 'works' });
  expect(await answers(SOLO, 80, web)).toBe(true);
  const veth = vethOf(node, web);
  world.run('bridge', 'link', 'set', 'dev', veth, 'hairpin', 'off');
  faults.undo(() => void world.run('bridge', 'link', 'set', 'dev', veth, 'hairpin', 'on'));
  await expectCode(SOLO, web.ip(), 'hairpin');
  expect(await answers(SOLO, 80, web)).toBe(false);
});

it('bridge-nf: frames between pods pass by the rules', async () => {
  faults.sysctl('net.bridge.bridge-nf-call-iptables', '0');
  await expectCode(SOLO, client.ip(), 'bridge-nf');
  expect(await answers(SOLO)).toBe(false);
});

it('accept-queue: the process does not take connections', async () => {
  const script = `
    const fd = require('node:net').createServer({ pauseOnConnect: true });
    fd.listen({ port: 8090, host: '0.0.0.0', backlog: 1 }, () => { process.stdout.write('ready'); for (;;); });`;
  const busy = spawn('ip', ['netns', 'exec', web.namespace.name, process.execPath, '-e', script]);
  faults.undo(() => busy.kill('SIGKILL'));
  await once(busy.stdout, 'data');
  await client.connectMany({ ip: '10.96.0.17', port: 80 }, 6, { timeoutMs: 500 });
  await expectCode('svc/shop/full', client.ip(), 'accept-queue');
  expect(await answers('10.96.0.17')).toBe(false);
});

it("host-endpoint: the node's own firewall drops it", async () => {
  expect(await world.ask('svc/shop/host', client.ip())).toMatchObject({ verdict: 'works' });
  faults.nft(
    'table inet theirs { chain input { type filter hook input priority 0; tcp dport 9000 drop; } }',
    'inet theirs',
  );
  await expectCode('svc/shop/host', client.ip(), 'host-endpoint');
  expect(await answers('10.96.0.14')).toBe(false);
});

it('way-back: answers cannot get to the client', async () => {
  const to = `${outside.ip()}/32`;
  faults.ip(`route add unreachable ${to}`, `route del unreachable ${to}`);
  await expectCode('node:30080', outside.ip(), 'way-back');
  expect(await answers(node.ip(), 30080, outside)).toBe(false);
});

it('pod-route: the client has no route', async () => {
  client.namespace.run('ip', 'route', 'del', 'default');
  faults.undo(() => void client.namespace.run('ip', 'route', 'add', 'default', 'via', '10.244.1.1'));
  await expectCode(VIP.IPv4, client.ip(), 'pod-route');
  expect(await answers(VIP.IPv4)).toBe(false);
});

it('works again when all is mended, from everywhere', async () => {
  const expected = { verdict: 'works', code: null };
  expect(await world.ask(VIP.IPv4, client.ip())).toMatchObject(expected);
  expect(await world.ask('node:30080', outside.ip())).toMatchObject(expected);
  expect(await answers(VIP.IPv4)).toBe(true);
});

it('family: the node has no address of the destination’s family to connect from', async () => {
  world.sysctl('net.ipv6.conf.all.disable_ipv6=1');
  expect(await world.ask('[fd00:77::1]:80', 'node')).toMatchObject({
    verdict: 'fails',
    code: 'family',
    cause: 'this node has no IPv6 address to connect to fd00:77::1 from.',
    remedy: ['ip -6 address'],
  });
  await expect(answers('fd00:77::1', 80, world.node)).rejects.toThrow('EADDRNOTAVAIL');
});

it('says that no agent answers, and reads manifests without one', async () => {
  await world.end();
  world.agent = undefined;
  const away = await world.command('explain', 'svc/shop/web');
  expect(away).toMatchObject({ exitCode: 69, stdout: '' });
  expect(away.stderr).toContain('Cannot ask the agent of this node');
  const offline = ['--manifests', world.manifests, '--node', 'node-1', '-o', 'json'];
  const read = await world.command('explain', 'svc/shop/web', ...offline);
  expect(read.exitCode).toBe(2);
  expect(JSON.parse(read.stdout)).toMatchObject({ verdict: 'unknown', code: 'cannot-tell' });
  expect((await world.command('explain', 'svc/shop/no', ...offline)).exitCode).toBe(1);
  const wrong = await world.command('explain', 'svc/shop/web', '--manifests', world.manifests, '--node', 'node-9');
  expect(wrong).toMatchObject({ exitCode: 64, stdout: '' });
  expect(wrong.stderr).toContain('has no Node "node-9": it has of Nodes node-1, node-2');
});

it('is asked about this node, and about no other without manifests', async () => {
  const { exitCode, stdout, stderr } = await world.command('explain', 'svc/shop/web', '--node', 'node-2');
  expect({ exitCode, stdout }).toEqual({ exitCode: 64, stdout: '' });
  expect(stderr).toContain('--node is for --manifests alone');
});
