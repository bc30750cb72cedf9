import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeService, makeSlice } from '../../fakes/service-objects.ts';
import { manifestOf, nodeObject, saveManifest } from '../../samples/manifests.ts';
import { createLab, type LabNode, type Pod, removeAll } from '../lab.ts';
import { PATIENCE } from '../patience.ts';
import { builtProgram } from '../programs.ts';

// From nodeplane in mode nftables back to a kube-proxy, whose rules of one Service stand for it.

const lab = createLab();
const node: LabNode = lab.addNode({ name: 'node-1' });
const [web, theirs, client] = ['web', 'theirs', 'client'].map((name) => node.addPod(name)) as [Pod, Pod, Pod];
const manifests = join(lab.folder, 'manifests');
const VIP = '10.96.1.1';

const KUBE_PROXY = {
  nftables: () =>
    node.namespace.run(
      'nft',
      `table ip kube-proxy {
  chain nat-prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    ip daddr ${VIP} tcp dport 80 dnat to ${theirs.ip()}:8080
  }
}`,
    ),
  iptables: () => {
    const iptables = (...args: string[]) => node.namespace.run('iptables-nft', '-t', 'nat', ...args);
    iptables('-N', 'KUBE-SERVICES');
    const service = ['-d', `${VIP}/32`, '-p', 'tcp', '--dport', '80'];
    iptables('-A', 'KUBE-SERVICES', ...service, '-j', 'DNAT', '--to-destination', `${theirs.ip()}:8080`);
    iptables('-A', 'PREROUTING', '-m', 'comment', '--comment', 'kubernetes service portals', '-j', 'KUBE-SERVICES');
  },
} as const;

/** kube-proxy's rules of the other family, in which there is no Service. */
const KUBE_PROXY_IPV6 = {
  nftables: () => node.namespace.run('nft', 'add table ip6 kube-proxy'),
  iptables: () => {
    node.namespace.run('ip6tables-nft', '-t', 'nat', '-N', 'KUBE-SERVICES');
    node.namespace.run('ip6tables-nft', '-t', 'nat', '-A', 'KUBE-SERVICES', '-j', 'RETURN');
  },
} as const;

const leave = () => {
  const { namespace } = node;
  const args = ['netns', 'exec', namespace.name, builtProgram('nodeplane'), 'cleanup', '--leave-kube-proxy'];
  return spawnSync('ip', args, { encoding: 'utf8' });
};
const tables = () => node.namespace.run('nft', 'list', 'tables');
const whoAnswers = async () => {
  const outcome = await client.connect({ ip: VIP, port: 80 }, { timeoutMs: 1000 });
  return outcome.kind === 'answered' ? outcome.by : outcome.kind;
};

beforeAll(async () => {
  for (const pod of [web, theirs]) await pod.serve({ port: 8080 });
  mkdirSync(manifests);
  const ports = [{ name: 'main', port: 80 }];
  saveManifest(
    manifests,
    'all.yaml',
    manifestOf(
      nodeObject(node),
      makeService('demo/web', { clusterIP: VIP, ports }),
      makeSlice('demo/web', [{ addresses: [web.ip()], nodeName: 'node-1' }], { ports: [{ name: 'main', port: 8080 }] }),
    ),
  );
});
afterAll(removeAll);

it.each(['nftables', 'iptables'] as const)(
  'kube-proxy in mode %s has the node to itself, and no connection is lost',
  async (mode) => {
    const agent = await node.startAgent({ manifests, flags: ['--proxy-mode', 'nftables', '--localhost-nodeports'] });
    expect(await whoAnswers()).toBe('web');
    expect(tables()).not.toMatch(/kube-proxy$/m);
    await agent.stop();
    const early = leave();
    expect(early.status).toBe(1);
    expect(early.stderr).toContain('start it, wait until it has synced');
    expect(await whoAnswers()).toBe('web');

    const load = await client.startLoad({ ip: VIP, port: 80 }, { perSecond: PATIENCE === 1 ? 100 : 10 });
    KUBE_PROXY[mode]();
    // What our mode ipvs has in a table that kube-proxy never looks at.
    node.namespace.run('iptables-nft', '-t', 'mangle', '-N', 'KUBE-IPVS-OUTSIDE');
    const comment = ['-m', 'comment', '--comment', 'kubernetes ipvs traffic from outside'];
    node.namespace.run('iptables-nft', '-t', 'mangle', '-A', 'PREROUTING', ...comment, '-j', 'KUBE-IPVS-OUTSIDE');
    node.namespace.run('iptables-nft', '-t', 'mangle', '-N', 'FOREIGN');
    const half = leave();
    expect(half).toMatchObject({ status: 0, stderr: '' });
    expect(half.stdout).toContain('IPv6: kube-proxy has no rules, so what is there stays');
    expect(tables()).toMatch(/table ip6 nodeplane$/m);
    expect(tables()).not.toMatch(/table ip nodeplane/);
    KUBE_PROXY_IPV6[mode]();
    for (let run = 0; run < 2; run++) expect(leave()).toMatchObject({ status: 0, stderr: '' });
    expect(tables()).not.toMatch(/nodeplane/);
    expect(node.namespace.run('iptables-nft-save', '-t', 'mangle')).not.toContain('KUBE-IPVS');
    expect(node.namespace.run('iptables-nft-save', '-t', 'mangle')).toContain('FOREIGN');
    expect(await whoAnswers()).toBe('theirs');
    const { answered } = await load.report();
    await expect.poll(async () => (await load.report()).answered).toBeGreaterThan(answered + 10);
    expect((await load.stop()).failures).toEqual([]);

    // And here again: what is kube-proxy's goes when ours stands.
    node.namespace.run('iptables-nft', '-t', 'mangle', '-X', 'FOREIGN');
    const again = await node.startAgent({ manifests, flags: ['--proxy-mode', 'nftables'] });
    await expect.poll(whoAnswers).toBe('web');
    await expect.poll(() => `${tables()}${node.iptablesSave('nft')}`).not.toMatch(/kube-proxy$|KUBE-SERVICES/m);
    await again.stop();
  },
);

it('rules of our own mode iptables are not taken for kube-proxy’s', async () => {
  const agent = await node.startAgent({ manifests, flags: ['--proxy-mode', 'iptables', '--localhost-nodeports'] });
  await agent.stop();
  const rules = () => [node.iptablesSave('nft').replaceAll(/^#.*\n/gm, ''), tables()].join('\n');
  const before = rules();
  expect(before).toContain('KUBE-SERVICES');
  const { status, stderr } = leave();
  expect({ status, stderr }).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('start it, wait until it has synced'),
  });
  expect(rules()).toBe(before);
});

it('with the capabilities of deploy/overlays/way-back a kube-proxy in iptables-legacy is seen, with NET_ADMIN alone it is not', () => {
  const { namespace } = node;
  const legacy = (...args: string[]) => namespace.run('iptables-legacy', '-t', 'nat', ...args);
  legacy('-N', 'KUBE-SERVICES');
  legacy('-A', 'KUBE-SERVICES', '-j', 'RETURN');
  namespace.run('nft', 'add', 'table', 'ip', 'nodeplane');
  const leaveWith = (capabilities: string) => {
    const bounds = [`--bounding-set=-all,${capabilities}`, '--inh-caps=-all'];
    const words = ['netns', 'exec', namespace.name, 'setpriv', ...bounds, builtProgram('nodeplane')];
    return spawnSync('ip', [...words, 'cleanup', '--leave-kube-proxy'], { encoding: 'utf8' }).status;
  };
  expect(leaveWith('+net_admin')).toBe(1);
  expect(tables()).toMatch(/table ip nodeplane$/m);
  expect(leaveWith('+net_admin,+net_raw')).toBe(0);
  expect(tables()).not.toMatch(/table ip nodeplane$/m);
  expect(legacy('-S', 'KUBE-SERVICES')).toContain('RETURN');
});
