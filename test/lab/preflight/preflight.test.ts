import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { PreflightReport } from '../../../src/preflight/index.ts';
import { exec } from '../../../src/sys/index.ts';
import { makeService } from '../../fakes/service-objects.ts';
import { manifestOf, nodeObject, saveManifest } from '../../samples/manifests.ts';
import { execIn } from '../iptables/fixtures.ts';
import { createFolder, removeAll, type TestNamespace } from '../namespace.ts';
import { asDockerLeavesIt, asFirewalldLeavesIt, asKubeletLeavesIt } from '../node-state.ts';
import { builtProgram } from '../programs.ts';
import { cleanNode, preflight } from './node.ts';

afterAll(removeAll);

const KUBE_PROXY = readFileSync(new URL('../../golden/iptables/kube-proxy.save', import.meta.url), 'utf8');
/** A second proxy's health port; ends by itself. */
const LISTENER =
  "require('node:net').createServer().listen(10256, '0.0.0.0'); setTimeout(() => process.exit(), 50_000)";

/** Everything that a look could have changed. */
function stateOf(namespace: TestNamespace): Record<string, string> {
  const saved = (...command: readonly string[]) => {
    try {
      // Counters of packets, and times, are not what is meant.
      return namespace
        .run(command[0]!, ...command.slice(1))
        .replace(/^#.*$|\[\d+:\d+\]|counter packets \d+ bytes \d+/gm, '');
    } catch (error) {
      return `no answer: ${String((error as Error).message).split('\n')[0]}`;
    }
  };
  return {
    nft: saved('nft', 'list', 'ruleset'),
    legacyTables: saved('cat', '/proc/net/ip_tables_names', '/proc/net/ip6_tables_names'),
    legacy: saved('iptables-legacy-save') + saved('ip6tables-legacy-save'),
    iptablesNft: saved('iptables-nft-save') + saved('ip6tables-nft-save'),
    links: saved('ip', '-d', 'link'),
    addresses: saved('ip', 'address'),
    routes: saved('ip', '-d', 'route', 'show', 'table', 'all') + saved('ip', '-6', 'route', 'show', 'table', 'all'),
    nexthops: saved('ip', 'nexthop'),
    rules: saved('ip', 'rule') + saved('ip', '-6', 'rule'),
    sets: saved('ipset', 'save'),
    sysctls: saved(
      'sh',
      '-c',
      'cd /proc/sys/net && grep -rs . ipv4/conf ipv6/conf ipv4/ip_forward netfilter bridge | grep -v "stable_secret\\|nf_conntrack_count" | sort',
    ),
  };
}

describe('a node where all is well', () => {
  it('nothing fails, nothing is a warning, and nothing changes', async () => {
    const node = cleanNode('clean');
    const before = stateOf(node);
    const { status, report } = await preflight(node);
    const bad = report.findings.filter(({ state }) => state !== 'ok' && state !== 'skipped' && state !== 'unknown');
    expect(bad.filter(({ check }) => check !== 'node.bridge-nf')).toEqual([]);
    expect(status).toBe(0);
    expect(stateOf(node)).toEqual(before);
    expect(report).toMatchObject({ schemaVersion: 1, node: 'node-1', mode: 'iptables', result: 'ok' });
  });

  it('warns of what the agent would warn of at its start, and fails for it with --strict', async () => {
    const node = cleanNode('warns');
    const { status, report } = await preflight(node, '--routes-tunnel', 'wireguard', '--strict');
    const found = report.findings.find(({ check }) => check === 'config.warnings');
    expect(found).toMatchObject({ state: 'warning' });
    expect(found?.message).toBe('nodeplane.routes.tunnel (--routes-tunnel) has no effect: --routes is none');
    expect(status).toBe(1);
  });

  it('ends with status 2 for flags that it does not know', async () => {
    const node = cleanNode('usage');
    const words = [['--no-such-flag'], ['-o', 'yaml'], ['--present-mode', 'ebpf'], ['--config', '/nowhere']];
    for (const flags of words) {
      const { status, stdout, stderr } = await execIn(node)(builtProgram('nodeplane'), ['preflight', ...flags]);
      expect([flags, status, stdout]).toEqual([flags, 2, '']);
      expect(stderr).toMatch(/\S/);
    }
  });
});

describe('a node with leftovers', () => {
  let node: TestNamespace;
  let found: Awaited<ReturnType<typeof preflight>>['found'];
  let status: number;
  let changed: [Record<string, string>, Record<string, string>];

  beforeAll(async () => {
    node = cleanNode('left');
    const load = (program: string, input: string) => execIn(node)(program, [], { input });
    asKubeletLeavesIt(node, 'nft');
    asDockerLeavesIt(node, 'legacy');
    asFirewalldLeavesIt(node);
    expect(await load('iptables-nft-restore', KUBE_PROXY)).toMatchObject({ status: 0 });
    node.run('iptables-nft', '-t', 'nat', '-N', 'CNI-HOSTPORT-SETMARK');
    node.run('iptables-nft', '-t', 'nat', '-A', 'CNI-HOSTPORT-SETMARK', '-j', 'KUBE-MARK-MASQ');
    node.run('iptables-nft', '-t', 'nat', '-N', 'FLANNEL-POSTRTG');
    node.run(
      'ip',
      'link',
      'add',
      'flannel.1',
      'type',
      'vxlan',
      'id',
      '1',
      'dstport',
      '8472',
      'local',
      '192.168.50.1',
      'dev',
      'eth0',
    );
    node.run('ip', 'link', 'add', 'cni0', 'mtu', '1500', 'type', 'bridge');
    node.run('ip', 'address', 'add', '10.0.0.7/24', 'dev', 'eth0');
    for (const [name, value] of [
      ['ipv4/conf/eth0/rp_filter', '1'],
      ['ipv4/conf/all/rp_filter', '0'],
      ['ipv4/conf/all/route_localnet', '1'],
      ['ipv4/ip_forward', '0'],
    ]) {
      node.run('sh', '-c', `echo ${value} > /proc/sys/net/${name}`);
    }
    const manifests = createFolder('preflight-manifests').path;
    const service = makeService('shop/web', { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] });
    const object = nodeObject({ name: 'node-1', ips: ['192.168.50.1'], podCidrs: ['10.244.1.0/24'] });
    saveManifest(manifests, 'all.yaml', manifestOf(object, service));
    const confDir = createFolder('preflight-conf').path;
    writeFileSync(join(confDir, '05-cilium.conflist'), '{}');
    const listener = execIn(node)(process.execPath, ['-e', LISTENER]);
    await vi.waitFor(() => expect(node.run('cat', '/proc/net/tcp')).toContain(':2810 '), { timeout: 20_000 });
    const before = stateOf(node);
    const seen = await preflight(
      node,
      '--proxy-mode=nftables',
      '--routes=auto',
      '--cni',
      `--cni-conf-dir=${confDir}`,
      `--manifests=${manifests}`,
    );
    changed = [before, stateOf(node)];
    ({ found, status } = seen);
    void listener.catch(() => {});
  }, 120_000);

  it('changed nothing', () => expect(changed[1]).toEqual(changed[0]));

  it('ends with status 1', () => expect(status).toBe(1));

  it.each([
    ['node.rp-filter', 'warning', 'eth0'],
    ['node.route-localnet', 'warning', 'route_localnet'],
    ['rules.iptables-variants', 'warning', 'both variants'],
    ['rules.other-proxy', 'warning', 'mode iptables: iptables-nft IPv4'],
    [
      'rules.forward',
      'warning',
      'lets no pods through nftables table inet firewalld (chain filter_FORWARD), iptables-legacy IPv4 (chain FORWARD)',
    ],
    ['rules.firewall', 'warning', 'firewalld'],
    ['rules.other-network', 'warning', 'flannel'],
    ['rules.ports', 'fails', '10256 is held by process'],
    ['links.vxlan', 'fails', '"flannel.1" has network 1 at port 8472'],
    ['links.leftovers', 'warning', 'flannel.1'],
    ['links.mtu', 'warning', 'cni0 1500: larger than the 1450'],
    ['links.tunnel-mtu', 'ok', '1450 of 1500'],
    ['cni.conflists', 'fails', '05-cilium.conflist'],
    ['cluster.api-server', 'skipped', 'objects come from'],
    ['cluster.node', 'ok', '192.168.50.1'],
    ['mode.change', 'ok', 'from mode iptables to nftables'],
    ['mode.localhost-nodeports', 'warning', '1 Service (shop/web)'],
    ['mode.nodeport-addresses', 'warning', '10.0.0.7'],
    ['mode.firewall-holes', 'warning', 'shop/web'],
    ['mode.mark-masq', 'warning', 'CNI-HOSTPORT-SETMARK -> KUBE-MARK-MASQ'],
  ])('%s: %s, %s', (check, state, words) => {
    expect(found(check)).toMatchObject({ state, message: expect.stringContaining(words) });
  });
});

it('a device that takes the whole port is told before it is in the way', async () => {
  const node = cleanNode('metadata');
  node.run('ip', 'link', 'add', 'cilium_vxlan', 'type', 'vxlan', 'external', 'dstport', '8472');
  const { found } = await preflight(node, '--routes=vxlan');
  expect(found('links.vxlan')).toMatchObject({ state: 'fails' });
});

it('without capabilities it says what it cannot tell, and ends', async () => {
  const node = cleanNode('bare');
  const before = stateOf(node);
  const words = [
    '--bounding-set=-all',
    '--inh-caps=-all',
    '--ambient-caps=-all',
    '--',
    builtProgram('nodeplane'),
    'preflight',
    '-o',
    'json',
    '--hostname-override=node-1',
  ];
  const { stdout, status } = await execIn(node)('setpriv', words);
  const { findings } = JSON.parse(stdout) as PreflightReport;
  expect(status).toBe(1);
  expect(findings.find(({ check }) => check === 'node.capabilities')).toMatchObject({ state: 'fails' });
  expect(findings.filter(({ state }) => state === 'unknown').length).toBeGreaterThan(2);
  expect(stateOf(node)).toEqual(before);
});

it('with the rights of deploy/overlays/preflight all rules are read', async () => {
  const node = cleanNode('least');
  const words = [
    '--bounding-set=-all,+net_admin,+net_raw',
    '--',
    builtProgram('nodeplane'),
    'preflight',
    '-o',
    'json',
    '--hostname-override=node-1',
  ];
  const { stdout } = await exec('nsenter', [`--net=${node.path}`, 'setpriv', ...words]);
  const { findings } = JSON.parse(stdout) as PreflightReport;
  const unknown = findings.filter(({ state }) => state === 'unknown').map(({ check }) => check);
  expect(unknown).toEqual(['kernel.iptables']);
});
