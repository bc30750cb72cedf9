import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { manifestOf, saveManifest } from '../../samples/manifests.ts';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults, keepSocket, mangleOneAnswer } from './faults.ts';
import { faultObjects, faultsOf, VIP } from './kernel-faults.ts';

// The faults of faults-kernel.test.ts in the modes that write iptables, and rules of somebody else written with the same tool.

useOwnLockFile();
const world = new ExplainWorld();
const { node, web, far, client } = world;
const faults = new Faults(world);
/** Longer than a question takes, so that what is broken is not mended meanwhile. */
const MIN_SYNC = ['--iptables-min-sync-period', '20s'];

const MODES = { legacy: ['iptables-legacy', 'ip6tables-legacy'], nft: ['iptables-nft', 'ip6tables-nft'] } as const;

beforeAll(async () => {
  await world.prepare(faultObjects(world));
  await node.serve({ port: 9000 });
}, 300_000);
afterAll(async () => {
  await world.end();
  removeAll();
});

describe.each(Object.entries(MODES))('iptables, variant %s', (variant, [ipv4, ipv6]) => {
  const isWritten = (vip: string) =>
    expect.poll(() => world.run(`${ipv4}-save`, '-t', 'nat').includes(vip), { timeout: patient(60_000) }).toBe(true);
  const addLate = (name: string, vip: string) => {
    saveManifest(world.manifests, `${name}.yaml`, manifestOf(...served(`shop/${name}`, vip, [on(node, web.ip())])));
    return isWritten(vip);
  };

  /** Packets of the node that belong to no tracked connection. */
  const counted = () =>
    [...world.run('conntrack', '-S').matchAll(/ invalid=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);

  beforeAll(async () => {
    await world.startAgent('--proxy-mode', 'iptables', '--iptables-variant', variant, ...MIN_SYNC);
  }, 300_000);
  afterAll(async () => {
    await world.end();
    // The rules of this variant would be another proxy's to the next one.
    await world.command('cleanup');
  });

  it.each(Object.entries(faultsOf(world, faults, 'FORWARD')))(
    '%s',
    async (_, { code, vip, from = client, break: breakIt }) => {
      const family = vip.includes(':') ? 'IPv6' : 'IPv4';
      if (breakIt) expect(await answers(from, vip)).toBe(true);
      breakIt?.(family === 'IPv4' ? ipv4 : ipv6);
      await faults.expectCode(vip, from.ip(family), code);
      expect(await answers(from, vip)).toBe(false);
    },
  );

  it('stale-udp: a flow leads to what is no endpoint', async () => {
    await world.atRest();
    const sourcePort = 40_053;
    const target = { ip: '10.96.0.18', port: 53, protocol: 'UDP' } as const;
    const ask = () => client.connect(target, { sourcePort, timeoutMs: patient(300) });
    const dnat = `ip daddr 10.96.0.18 udp dport 53 dnat to ${far.ip()}:8080`;
    faults.nft(`table ip theirs { chain nat { type nat hook prerouting priority -110; ${dnat}; } }`, 'ip theirs');
    await ask();
    faults.mend();
    const release = await keepSocket(faults, client, target, sourcePort);
    const { remedy } = await faults.expectCode('svc/shop/dns', client.ip(), 'stale-udp', { verdict: 'partly' });
    await release();
    expect(await ask()).toMatchObject({ by: 'far' });
    world.run('conntrack', ...remedy[0]!.split(' ').slice(1));
    expect(await ask()).toMatchObject({ by: 'web' });
  });

  it('untranslated: begun before there was a Service', async () => {
    await world.atRest();
    const [target, sourcePort] = [{ ip: VIP.IPv4, port: 80 }, 40_030];
    const begin = () => client.connect(target, { sourcePort, timeoutMs: patient(1500) });
    faults.leaveUntranslated(client, VIP.IPv4, sourcePort);
    const release = await keepSocket(faults, client, target, sourcePort);
    const { remedy } = await faults.expectCode(VIP.IPv4, client.ip(), 'untranslated', { verdict: 'partly' });
    await release();
    expect((await begin()).kind).not.toBe('answered');
    expect(await answers(client, VIP.IPv4)).toBe(true);
    world.run('conntrack', ...remedy[0]!.split(' ').slice(1));
    expect(await begin()).toMatchObject({ kind: 'answered', by: 'web' });
    expect(await world.ask(VIP.IPv4, client.ip())).toMatchObject({ verdict: 'works' });
  });

  it('drift: rules are gone just after they were written', async () => {
    await addLate(`late-${variant}`, variant === 'legacy' ? '10.96.0.30' : '10.96.0.31');
    world.run(ipv4, '-t', 'nat', '-F', 'KUBE-SERVICES');
    await faults.expectCode(VIP.IPv4, client.ip(), 'drift');
    expect(await answers(client, VIP.IPv4)).toBe(false);
    await isWritten('KUBE-SERVICES -d ');
  });

  it('an answer out of the window is dropped, and the connection goes on: no invalid-rst', async () => {
    // In the test before this client connected while rules were gone.
    world.run('conntrack', '-F');
    const connection = await client.hold({ ip: VIP.IPv4, port: 80 });
    const before = counted();
    mangleOneAnswer(faults, node, web, TARGET);
    expect(await connection.echo({ timeoutMs: 5000 })).toMatchObject({ kind: 'answered' });
    await connection.close();
    expect(counted()).toBeGreaterThan(before);
    // Where its chain on a link is there nothing can be told.
    faults.mend();
    expect(await world.ask(VIP.IPv4, client.ip())).toMatchObject({ verdict: 'works', warnings: [] });
  });

  it('a NodePort at localhost, whose answers a policy rule in front of table local leads elsewhere', async () => {
    const ports = { type: 'NodePort', ports: [{ port: 80, nodePort: 30_041 }] } as const;
    const objects = served('shop/loopback', '10.96.0.41', [on(node, web.ip())], ports);
    saveManifest(world.manifests, 'loopback.yaml', manifestOf(...objects));
    const isAnswered = () => answers(node, '127.0.0.1', 30_041);
    await expect.poll(isAnswered, { timeout: patient(60_000) }).toBe(true);
    await faults.expectWorks('127.0.0.1:30041', 'node');
    faults.ip('rule add prio 90 lookup local', 'rule del prio 90');
    faults.ip('rule del prio 0', 'rule add prio 0 lookup local');
    faults.ip('rule add iif cni0 prohibit prio 80', 'rule del prio 80');
    await faults.expectCode('127.0.0.1:30041', 'node', 'way-back');
    expect(await isAnswered()).toBe(false);
  });

  it('way-back: policy rules have a way for what is to be masqueraded, and none for what follows', async () => {
    faults.ip('rule add not fwmark 0x4000/0x4000 unreachable prio 134', 'rule del prio 134');
    await faults.expectCode(`${node.ip()}:30041`, client.ip(), 'way-back');
    expect(await answers(client, node.ip(), 30_041)).toBe(false);
    // Only first packets are marked.
    await faults.expectCode(`${node.ip()}:30041`, 'node', 'no-peer-route');
    expect(await answers(node, node.ip(), 30_041)).toBe(false);
  });

  // The other variant has no lock.
  if (variant === 'legacy') {
    it('agent-behind: somebody holds the lock of iptables', async () => {
      const holder = spawn('flock', [join(world.lab.folder, 'xtables.lock'), 'sleep', '1000'], { detached: true });
      faults.undo(() => process.kill(-holder.pid!, 'SIGKILL'));
      saveManifest(
        world.manifests,
        'wait.yaml',
        manifestOf(...served('shop/wait', '10.96.0.40', [on(node, web.ip())])),
      );
      const code = async () => (await world.ask('10.96.0.40:80', client.ip())).code;
      await expect.poll(code, { timeout: patient(90_000), interval: 1000 }).toBe('agent-behind');
      expect(await answers(client, '10.96.0.40')).toBe(false);
    });
  }

  it('works again when all is mended', async () => {
    // Connections that were begun while rules were gone stay as they are.
    world.run('conntrack', '-F');
    for (const family of ['IPv4', 'IPv6'] as const) {
      expect(await world.ask(VIP[family], client.ip(family))).toMatchObject({ verdict: 'works', code: null });
      expect(await answers(client, VIP[family])).toBe(true);
    }
  });
});
