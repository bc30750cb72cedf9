import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CauseCode } from '../../../src/explain/index.ts';
import { makeService } from '../../fakes/service-objects.ts';
import { manifestOf, saveManifest } from '../../samples/manifests.ts';
import { useOwnLockFile } from '../iptables/fixtures.ts';
import { type Host, removeAll } from '../lab.ts';
import { patient } from '../patience.ts';
import { ExplainWorld, on, served, TARGET } from './explain-world.ts';
import { answers, Faults, mangleOneAnswer, vethOf } from './faults.ts';

// The faults of faults-kernel.test.ts in the modes that write iptables, and rules of somebody else written with the same tool.

useOwnLockFile();
const world = new ExplainWorld();
const { node, other, web, far, client } = world;
const faults = new Faults(world);
const VIP = { IPv4: '10.96.0.10', IPv6: 'fd00:96::10' } as const;
const FAR = { IPv4: '10.96.0.12', IPv6: 'fd00:96::12' } as const;
const HOST = '10.96.0.14';
/** Longer than a question takes, so that what is broken is not mended meanwhile. */
const MIN_SYNC = ['--iptables-min-sync-period', '20s'];

const MODES = { legacy: ['iptables-legacy', 'ip6tables-legacy'], nft: ['iptables-nft', 'ip6tables-nft'] } as const;

/** What is broken, and where it shows. */
interface Fault {
  readonly code: CauseCode;
  readonly vip: string;
  /** @default the client */
  readonly from?: Host;
  readonly break?: (tool: string) => void;
}

const rule = (chain: string, words: string) => (tool: string) =>
  faults.run(tool, `-I ${chain} 1 ${words} -j DROP`, `-D ${chain} ${words} -j DROP`);

const FAULTS: Readonly<Record<string, Fault>> = {
  'rules drop the packet': { code: 'foreign-drop', vip: VIP.IPv4, break: rule('FORWARD', '-p tcp --dport 8080') },
  'rules drop the packet, IPv6': { code: 'foreign-drop', vip: VIP.IPv6, break: rule('FORWARD', '-p tcp --dport 8080') },
  'rules drop the answer': { code: 'foreign-drop', vip: VIP.IPv4, break: rule('FORWARD', '-p tcp --sport 8080') },
  "the node's own firewall": { code: 'host-endpoint', vip: HOST, break: rule('INPUT', '-p tcp --dport 9000') },
  'another proxy in front': {
    code: 'old-proxy',
    vip: VIP.IPv4,
    break: () => {
      const dnat = `ip daddr ${VIP.IPv4} tcp dport 80 dnat to 10.244.1.200:8080`;
      const chain = `chain nat { type nat hook prerouting priority -110; ${dnat}; }`;
      faults.nft(`table ip kube-proxy { ${chain} }`, 'ip kube-proxy');
    },
  },
  'no route to the other node': {
    code: 'no-peer-route',
    vip: FAR.IPv6,
    break: () =>
      faults.ip(
        '-6 route add unreachable fd00:10:244:2::/65 metric 1',
        '-6 route del unreachable fd00:10:244:2::/65 metric 1',
      ),
  },
  'nothing is forwarded': {
    code: 'forwarding',
    vip: FAR.IPv6,
    break: () => faults.sysctl('net.ipv6.conf.all.forwarding', '0'),
  },
  'rp_filter is strict': {
    code: 'rp-filter',
    vip: VIP.IPv4,
    break: () => {
      faults.sysctl('net.ipv4.conf.all.rp_filter', '1');
      faults.ip(`route add ${client.ip()}/32 dev eth0`, `route del ${client.ip()}/32 dev eth0`);
    },
  },
  'a pair is down': {
    code: 'link-down',
    vip: VIP.IPv4,
    break: () => faults.ip(`link set ${vethOf(node, web)} down`, `link set ${vethOf(node, web)} up`),
  },
  'no hairpin': {
    code: 'hairpin',
    vip: VIP.IPv4,
    from: web,
    break: () => {
      const port = `link set dev ${vethOf(node, web)} hairpin`;
      faults.run('bridge', `${port} off`, `${port} on`);
    },
  },
  'frames pass by the rules': {
    code: 'bridge-nf',
    vip: VIP.IPv4,
    break: () => faults.sysctl('net.bridge.bridge-nf-call-iptables', '0'),
  },
  'nobody listens': { code: 'target-port', vip: '10.96.0.15' },
  'no endpoints': { code: 'no-endpoints', vip: '10.96.0.16' },
  'none of this node': { code: 'local-none', vip: '10.96.0.17' },
};

beforeAll(async () => {
  await world.prepare([
    ...served('shop/web', VIP.IPv4, [on(node, web.ip())]),
    ...served('shop/web6', VIP.IPv6, [on(node, web.ip('IPv6'))]),
    ...served('shop/far6', FAR.IPv6, [on(other, far.ip('IPv6'))]),
    ...served('shop/host', HOST, [on(node, node.ip())], {}, 9000),
    ...served('shop/closed', '10.96.0.15', [on(node, web.ip())], {}, 9999),
    makeService('shop/none', { clusterIP: '10.96.0.16' }),
    ...served('shop/local', '10.96.0.17', [on(other, far.ip())], { internalTrafficPolicy: 'Local' }),
    ...served('shop/dns', '10.96.0.18', [on(node, web.ip())], { ports: [{ port: 53, protocol: 'UDP' }] }),
  ]);
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

  it.each(Object.entries(FAULTS))('%s', async (_, { code, vip, from = client, break: breakIt }) => {
    const family = vip.includes(':') ? 'IPv6' : 'IPv4';
    if (breakIt) expect(await answers(from, vip)).toBe(true);
    breakIt?.(family === 'IPv4' ? ipv4 : ipv6);
    await faults.expectCode(vip, from.ip(family), code);
    expect(await answers(from, vip)).toBe(false);
  });

  it('stale-udp: a flow leads to what is no endpoint', async () => {
    const sourcePort = 40_053;
    const ask = () =>
      client.connect({ ip: '10.96.0.18', port: 53, protocol: 'UDP' }, { sourcePort, timeoutMs: patient(300) });
    const dnat = `ip daddr 10.96.0.18 udp dport 53 dnat to ${far.ip()}:8080`;
    faults.nft(`table ip theirs { chain nat { type nat hook prerouting priority -110; ${dnat}; } }`, 'ip theirs');
    await ask();
    faults.mend();
    const { remedy } = await faults.expectCode('svc/shop/dns', client.ip(), 'stale-udp', { verdict: 'partly' });
    expect(await ask()).toMatchObject({ by: 'far' });
    world.run('conntrack', ...remedy[0]!.split(' ').slice(1));
    expect(await ask()).toMatchObject({ by: 'web' });
  });

  it('untranslated: begun before there was a Service; drift: rules are gone just after they were written', async () => {
    const vip = variant === 'legacy' ? '10.96.0.30' : '10.96.0.31';
    const begin = () => client.connect({ ip: vip, port: 80 }, { sourcePort: 40_030, timeoutMs: patient(1500) });
    expect((await begin()).kind).not.toBe('answered');
    await addLate(`late-${variant}`, vip);
    world.run(ipv4, '-t', 'nat', '-F', 'KUBE-SERVICES');
    await faults.expectCode(VIP.IPv4, client.ip(), 'drift');
    expect(await answers(client, VIP.IPv4)).toBe(false);
    await isWritten('KUBE-SERVICES -d ');
    const { remedy } = await faults.expectCode(vip, client.ip(), 'untranslated', { verdict: 'partly' });
    expect((await begin()).kind).not.toBe('answered');
    expect(await answers(client, vip)).toBe(true);
    world.run('conntrack', ...remedy[0]!.split(' ').slice(1));
    expect(await begin()).toMatchObject({ kind: 'answered', by: 'web' });
    expect(await world.ask(vip, client.ip())).toMatchObject({ verdict: 'works' });
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
    expect(await world.ask(VIP.IPv4, client.ip())).toMatchObject({ verdict: 'works', warnings: [] });
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
