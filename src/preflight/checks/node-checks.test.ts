import { describe, expect, it } from 'vitest';
import { type Differences, link, look, vxlanLink } from '../../../test/fakes/preflight-world.ts';
import { parseIp } from '../../core/index.ts';
import { ApiStatusError } from '../../kube/index.ts';

const rules = (table: string, ...lines: readonly string[]) => [`*${table}`, ...lines, 'COMMIT', ''].join('\n');
const routes = ['--routes=auto'];
const wireguard = ['--routes=wireguard'];
const cni = ['--cni'];

/** Each check where all is well, and where it is not: the state, and words that have to be in what it says. */
const CASES: readonly (readonly [check: string, state: string, words: string, Differences?])[] = [
  ['config.warnings', 'ok', 'has an effect'],
  [
    'config.warnings',
    'warning',
    'nodeplane.routes.tunnel (--routes-tunnel) has no effect: --routes is none',
    { flags: ['--routes-tunnel=wireguard'] },
  ],
  ['config.warnings', 'warning', 'configSyncPeriod', { flags: ['--config-sync-period=1m'] }],
  ['kernel.ipv6', 'ok', 'IPv6 is there'],
  ['kernel.ipv6', 'ok', 'served alone', { node: { whyNoIpv6: () => 'the kernel has no IPv6' } }],
  [
    'kernel.ipv6',
    'fails',
    '--bind-address',
    { flags: ['--bind-address=fd00::1'], node: { whyNoIpv6: () => 'the kernel has no IPv6' } },
  ],
  ['kernel.nftables', 'ok', 'all that mode nftables needs'],
  ['kernel.nftables', 'ok', 'not needed', { kernel: { nftables: () => 'no nf_tables' } }],
  [
    'kernel.nftables',
    'fails',
    'mode nftables and --cni',
    { flags: ['--proxy-mode=nftables', ...cni], kernel: { nftables: () => 'no nf_tables' } },
  ],
  ['kernel.iptables', 'ok', 'iptables-nft'],
  [
    'kernel.iptables',
    'unknown',
    'cannot be told',
    { kernel: { iptables: async () => ({ variant: 'legacy', reason: 'r', hasNat: undefined }) } },
  ],
  [
    'kernel.iptables',
    'fails',
    'no such table',
    { kernel: { iptables: async () => ({ variant: 'legacy', reason: 'r', hasNat: false, said: 'no such table' }) } },
  ],
  [
    'kernel.iptables',
    'ok',
    'not needed',
    { flags: ['--proxy-mode=nftables'], kernel: { iptables: () => Promise.reject(new Error('no program')) } },
  ],
  ['kernel.ipvs', 'ok', 'has dummy', {}],
  ['kernel.ipvs', 'ok', 'not needed', { kernel: { hasIpvs: () => false } }],
  ['kernel.ipvs', 'fails', 'ip_vs', { flags: ['--proxy-mode=ipvs'], kernel: { hasIpvs: () => false } }],
  [
    'kernel.ipvs',
    'fails',
    'dummy',
    { flags: ['--proxy-mode=ipvs'], kernel: { hasLinkKind: (kind) => kind !== 'dummy' } },
  ],
  ['kernel.ipset', 'ok', 'ipset types'],
  [
    'kernel.ipset',
    'fails',
    'hash:ip,port',
    { flags: ['--proxy-mode=ipvs'], kernel: { missingSetTypes: () => ['hash:ip,port'] } },
  ],
  ['kernel.conntrack', 'ok', 'connection tracking'],
  ['kernel.conntrack', 'fails', 'every mode', { kernel: { hasConntrack: () => false } }],
  ['kernel.bridge', 'ok', 'bridges'],
  ['kernel.bridge', 'fails', '--cni', { flags: cni, kernel: { hasLinkKind: () => false } }],
  ['kernel.vxlan', 'ok', 'VXLAN'],
  ['kernel.vxlan', 'fails', '--routes auto', { flags: routes, kernel: { hasLinkKind: () => false } }],
  ['kernel.wireguard', 'ok', 'has WireGuard'],
  ['kernel.wireguard', 'ok', 'no WireGuard', { kernel: { hasLinkKind: () => false } }],
  ['kernel.wireguard', 'fails', '--routes wireguard', { flags: wireguard, kernel: { hasLinkKind: () => false } }],
  [
    'kernel.wireguard',
    'fails',
    '--routes auto',
    { flags: [...routes, '--routes-tunnel=wireguard'], kernel: { hasLinkKind: () => false } },
  ],
  ['kernel.vxlan', 'ok', 'not needed', { flags: wireguard, kernel: { hasLinkKind: () => false } }],
  ['kernel.nexthops', 'ok', 'nexthop objects'],
  ['kernel.nexthops', 'skipped', '--routes', { kernel: { hasNexthops: () => false } }],
  ['kernel.nexthops', 'warning', 'more nodes', { flags: routes, kernel: { hasNexthops: () => false } }],
  ['node.capabilities', 'ok', 'needs'],
  [
    'node.capabilities',
    'warning',
    'CAP_SYS_ADMIN',
    { flags: cni, node: { capabilities: () => new Set(['NET_ADMIN', 'NET_RAW']) } },
  ],
  ['node.capabilities', 'fails', 'CAP_NET_ADMIN', { node: { capabilities: () => new Set() } }],
  ['node.proc-sys', 'ok', 'written'],
  ['node.proc-sys', 'warning', 'read-only', { node: { isProcSysWritable: () => false } }],
  ['node.forwarding', 'ok', 'forwarded'],
  ['node.forwarding', 'fails', 'net.ipv4.ip_forward', { sysctls: { 'net/ipv4/ip_forward': '0' } }],
  ['node.forwarding', 'warning', 'ipv6', { sysctls: { 'net/ipv6/conf/all/forwarding': '0' } }],
  ['node.forwarding', 'ok', 'ADD', { flags: cni, sysctls: { 'net/ipv4/ip_forward': '0' } }],
  ['node.forwarding', 'warning', 'by eth1:', { sysctls: { 'net/ipv4/conf/eth1/forwarding': '0' } }],
  ['node.forwarding', 'warning', 'by links yet to', { sysctls: { 'net/ipv4/conf/default/forwarding': '0' } }],
  ['node.rp-filter', 'ok', 'no interface'],
  ['node.rp-filter', 'warning', 'eth1', { sysctls: { 'net/ipv4/conf/eth1/rp_filter': '1' } }],
  [
    'node.rp-filter',
    'ok',
    'loose',
    { sysctls: { 'net/ipv4/conf/eth1/rp_filter': '1', 'net/ipv4/conf/all/rp_filter': '2' } },
  ],
  ['node.bridge-nf', 'ok', 'meet the rules'],
  ['node.bridge-nf', 'warning', 'same bridge', { sysctls: { 'net/bridge/bridge-nf-call-iptables': undefined } }],
  ['node.conntrack-max', 'ok', '10 of 1000'],
  ['node.conntrack-max', 'warning', '750 of 1000', { sysctls: { 'net/netfilter/nf_conntrack_count': '750' } }],
  ['node.conntrack-max', 'fails', 'refused', { sysctls: { 'net/netfilter/nf_conntrack_count': '900' } }],
  ['node.conntrack-max', 'skipped', 'not in use', { sysctls: { 'net/netfilter/nf_conntrack_max': undefined } }],
  ['node.route-localnet', 'ok', 'cannot reach'],
  ['node.route-localnet', 'warning', 'route_localnet is on', { sysctls: { 'net/ipv4/conf/all/route_localnet': '1' } }],
  ['rules.iptables-variants', 'ok', 'no rules'],
  [
    'rules.iptables-variants',
    'ok',
    'only iptables-legacy',
    { saves: { legacy: rules('filter', ':INPUT ACCEPT', '-A INPUT -j ACCEPT') } },
  ],
  [
    'rules.iptables-variants',
    'warning',
    'nft 1, legacy 1',
    {
      saves: {
        nft: rules('filter', ':INPUT ACCEPT', '-A INPUT -j ACCEPT'),
        legacy: rules('nat', ':OUTPUT ACCEPT', '-A OUTPUT -j ACCEPT'),
      },
    },
  ],
  [
    'rules.iptables-variants',
    'unknown',
    'Permission denied',
    { node: { iptables: async () => ({ unreadable: 'Permission denied' }) } },
  ],
  ['rules.other-proxy', 'ok', 'no proxy'],
  [
    'rules.other-proxy',
    'ok',
    'rules of nodeplane',
    { node: { nftables: () => ({ tables: [{ kind: 'table', family: 'ip', name: 'nodeplane' }], chains: [] }) } },
  ],
  [
    'rules.other-proxy',
    'warning',
    'mode iptables',
    { saves: { nft: rules('nat', ':KUBE-SERVICES -', ':KUBE-PROXY-CANARY -') } },
  ],
  [
    'rules.other-proxy',
    'warning',
    'mode nftables',
    { node: { nftables: () => ({ tables: [{ kind: 'table', family: 'ip6', name: 'kube-proxy' }], chains: [] }) } },
  ],
  [
    'rules.other-proxy',
    'warning',
    'mode ipvs',
    {
      saves: {
        legacy: rules(
          'nat',
          ':KUBE-SERVICES -',
          '-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT',
        ),
      },
    },
  ],
  ['rules.firewall', 'ok', 'no firewall'],
  ['rules.firewall', 'warning', 'ufw', { saves: { legacy: rules('filter', ':ufw-user-input -') } }],
  ['rules.firewall', 'warning', 'shorewall', { saves: { legacy: rules('filter', ':shorewall -') } }],
  [
    'rules.firewall',
    'warning',
    'firewalld',
    { node: { nftables: () => ({ tables: [{ kind: 'table', family: 'inet', name: 'firewalld' }], chains: [] }) } },
  ],
  ['rules.other-network', 'ok', 'no other pod network'],
  ['rules.other-network', 'ok', 'its own', { saves: { nft: rules('nat', ':cali-POSTROUTING -') } }],
  ['rules.other-network', 'warning', 'Calico', { flags: cni, saves: { nft: rules('nat', ':cali-POSTROUTING -') } }],
  [
    'rules.other-network',
    'warning',
    'Cilium (link cilium_host)',
    { flags: cni, node: { links: () => [link('cilium_host')] } },
  ],
  [
    'rules.other-network',
    'warning',
    'kube-router',
    { flags: cni, saves: { nft: rules('filter', ':KUBE-ROUTER-FORWARD -') } },
  ],
  [
    'rules.other-network',
    'warning',
    'flannel-ipv4',
    {
      flags: cni,
      node: { nftables: () => ({ tables: [{ kind: 'table', family: 'ip', name: 'flannel-ipv4' }], chains: [] }) },
    },
  ],
  ['rules.other-network', 'warning', 'alone', { flags: cni, saves: { nft: rules('filter', ':KUBE-POD-FW-A -') } }],
  ['rules.neighbours', 'ok', 'no other program'],
  ['rules.neighbours', 'ok', 'Tailscale (iptables-nft', { saves: { nft: rules('filter', ':ts-input -') } }],
  [
    'rules.neighbours',
    'warning',
    'addresses of 100.96.0.0/11',
    { flags: ['--cluster-cidr=100.96.0.0/11'], saves: { nft: rules('filter', ':ts-input -') } },
  ],
  [
    'rules.neighbours',
    'warning',
    'nobody listens at 169.254.20.10:53',
    { node: { links: () => [link('nodelocaldns')] } },
  ],
  [
    'rules.neighbours',
    'ok',
    'NodeLocal DNSCache (iptables-legacy',
    {
      saves: { legacy: rules('raw', ':PREROUTING ACCEPT', '-A PREROUTING -d 169.254.20.10/32 -p udp -j NOTRACK') },
      node: { listeners: () => [{ ip: parseIp('169.254.20.10'), port: 53, process: undefined }] },
    },
  ],
  ['rules.ports', 'ok', 'free'],
  [
    'rules.ports',
    'fails',
    'process 7 (kube-proxy)',
    { node: { listeners: () => [{ ip: parseIp('0.0.0.0'), port: 10256, process: 'process 7 (kube-proxy)' }] } },
  ],
  [
    'rules.ports',
    'fails',
    'cannot be seen',
    { node: { listeners: () => [{ ip: parseIp('::'), port: 10249, process: undefined }] } },
  ],
  [
    'rules.ports',
    'ok',
    'free',
    { node: { listeners: () => [{ ip: parseIp('192.168.50.1'), port: 10249, process: undefined }] } },
  ],
  [
    'rules.ports',
    'warning',
    'nodeplane',
    { node: { listeners: () => [{ ip: parseIp('127.0.0.1'), port: 10249, process: 'process 7 (node nodeplane)' }] } },
  ],
  ['links.vxlan', 'skipped', '--routes'],
  ['links.vxlan', 'skipped', '--routes', { flags: wireguard, node: { links: () => [vxlanLink('flannel.1')] } }],
  ['links.vxlan', 'ok', 'is free', { flags: routes, node: { links: () => [vxlanLink('flannel.9', { vni: 9 })] } }],
  ['links.vxlan', 'fails', 'two devices cannot', { flags: routes, node: { links: () => [vxlanLink('flannel.1')] } }],
  [
    'links.vxlan',
    'fails',
    'external mode',
    { flags: routes, node: { links: () => [vxlanLink('cilium_vxlan', { vni: 0, metadata: true })] } },
  ],
  ['links.leftovers', 'ok', 'no device'],
  ['links.leftovers', 'warning', 'flannel.1', { node: { links: () => [link('flannel.1')] } }],
  [
    'links.leftovers',
    'warning',
    '1 ports',
    { node: { links: () => [link('cni0', { kind: 'bridge' }), link('veth1', { index: 8, master: 7 })] } },
  ],
  ['links.leftovers', 'ok', 'no device', { flags: cni, node: { links: () => [link('cni0', { kind: 'bridge' })] } }],
  ['links.leftovers', 'warning', 'kube-ipvs0', { node: { links: () => [link('kube-ipvs0', { kind: 'dummy' })] } }],
  ['links.mtu', 'ok', 'eth0 1500'],
  [
    'links.mtu',
    'warning',
    'cni0 1500: larger than the 1450',
    { flags: routes, node: { links: () => [link('cni0', { kind: 'bridge' })] } },
  ],
  ['links.mtu', 'unknown', 'no interface', { node: { underlay: () => undefined } }],
  ['links.tunnel-mtu', 'skipped', 'no --routes'],
  ['links.tunnel-mtu', 'ok', '1450 of 1500', { flags: routes }],
  ['links.tunnel-mtu', 'ok', '1440 of 1500', { flags: wireguard }],
  ['links.tunnel-mtu', 'warning', '1440 is used', { flags: [...wireguard, '--routes-mtu=1450'] }],
  ['links.tunnel-mtu', 'warning', '1450 is used', { flags: [...routes, '--routes-mtu=1480'] }],
  [
    'links.tunnel-mtu',
    'fails',
    'its MTU of 600',
    {
      flags: routes,
      node: {
        underlay: () => ({ index: 2, name: 'eth0', mtu: 600, address: parseIp('192.0.2.1'), prefixes: [], routed: [] }),
      },
    },
  ],
  ['cni.conflists', 'skipped', 'no --cni'],
  ['cni.conflists', 'ok', 'sorts before', { flags: cni, node: { files: () => ['87-podman.conflist', '00-note.txt'] } }],
  ['cni.conflists', 'ok', 'not there yet', { flags: cni, node: { files: () => undefined } }],
  ['cni.conflists', 'fails', '05-cilium.conflist', { flags: cni, node: { files: () => ['05-cilium.conflist'] } }],
  ['cluster.api-server', 'ok', '192.168.50.9'],
  [
    'cluster.api-server',
    'warning',
    'ClusterIP',
    { cluster: { origin: { kind: 'api', server: 'https://10.96.0.1:443', host: '10.96.0.1', by: 'environment' } } },
  ],
  [
    'cluster.api-server',
    'fails',
    'no byte',
    { cluster: { server: () => Promise.reject(new Error('no byte for 15 s')) } },
  ],
  ['cluster.api-server', 'skipped', '/manifests', { cluster: { origin: { kind: 'manifests', folder: '/manifests' } } }],
  ['cluster.clock', 'ok', '0 s'],
  ['cluster.clock', 'warning', '11 s ahead', { cluster: { server: async () => ({ version: '', aheadSeconds: 11 }) } }],
  [
    'cluster.clock',
    'fails',
    '300 s behind',
    { cluster: { server: async () => ({ version: '', aheadSeconds: -300 }) } },
  ],
  [
    'cluster.clock',
    'unknown',
    'does not tell',
    { cluster: { server: async () => ({ version: '', aheadSeconds: undefined }) } },
  ],
  ['cluster.kubeadm-proxy', 'ok', 'leaves the proxy alone'],
  ['cluster.kubeadm-proxy', 'ok', 'no cluster of kubeadm', { cluster: { kubeadmConfig: async () => undefined } }],
  [
    'cluster.kubeadm-proxy',
    'warning',
    'kubeadm upgrade apply',
    { cluster: { kubeadmConfig: async () => 'kind: ClusterConfiguration' } },
  ],
  [
    'cluster.kubeadm-proxy',
    'unknown',
    'may not be read',
    { cluster: { kubeadmConfig: () => Promise.reject(new ApiStatusError('GET', 403, '')) } },
  ],
  ['cluster.node', 'ok', '192.168.50.1'],
  [
    'cluster.node',
    'fails',
    'no Node "node-1"',
    { cluster: { objects: async () => ({ node: undefined, services: [], problems: [], doubts: [] }) } },
  ],
  ['cluster.pod-cidrs', 'skipped', 'as configured'],
  ['cluster.pod-cidrs', 'ok', '10.244.1.0/24', { flags: cni }],
  [
    'cluster.pod-cidrs',
    'fails',
    'no podCIDRs',
    { flags: cni, cluster: { objects: async () => ({ node: undefined, services: [], problems: [], doubts: [] }) } },
  ],
  ['cluster.objects', 'ok', '0 Services'],
  [
    'cluster.objects',
    'warning',
    'a.yaml',
    { cluster: { objects: async () => ({ node: undefined, services: [], problems: ['a.yaml:1: no'], doubts: [] }) } },
  ],
  [
    'cluster.objects',
    'warning',
    'probably not meant: a.yaml:2: odd',
    { cluster: { objects: async () => ({ node: undefined, services: [], problems: [], doubts: ['a.yaml:2: odd'] }) } },
  ],
  ['cluster.objects', 'skipped', 'nothing leads', { cluster: { origin: { kind: 'none', reason: 'none is named' } } }],
];

describe('each check on both sides', () => {
  const cases = CASES.map(([check, state, words, differences = {}]) => [check, state, words, differences] as const);

  it.each(cases)('%s: %s (%s)', async (check, state, words, differences) => {
    const outcome = await look(check, differences);
    expect(outcome.state, outcome.message).toBe(state);
    expect(outcome.message).toContain(words);
    const needsRemedy = state === 'warning' || state === 'fails';
    if (needsRemedy) expect(outcome.remedy).toMatch(/\S/);
    if (state === 'ok') expect(outcome.remedy).toBeUndefined();
  });
});
