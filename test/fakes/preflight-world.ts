import { readCommandLine } from '../../src/config/index.ts';
import { inSlices, parseIp } from '../../src/core/index.ts';
import type { Node, Service } from '../../src/kube/index.ts';
import type { Link } from '../../src/netlink/route/index.ts';
import { CHECKS, type World } from '../../src/preflight/index.ts';
import { parseSave } from '../../src/proxy/rules/index.ts';

type NodeFacts = World['node'];
type ClusterFacts = World['cluster'];

/** What of a healthy node and cluster is to be different. */
export interface Differences {
  /** Flags of the agent. */
  readonly flags?: readonly string[];
  readonly node?: Partial<Omit<NodeFacts, 'kernel'>>;
  readonly kernel?: Partial<NodeFacts['kernel']>;
  readonly sysctls?: Readonly<Record<string, string | undefined>>;
  /** What iptables-save says, by variant, of IPv4. */
  readonly saves?: Readonly<Partial<Record<'nft' | 'legacy', string>>>;
  readonly cluster?: Partial<ClusterFacts>;
  readonly services?: readonly Service[];
  readonly presentMode?: World['presentMode'];
}

const SYSCTLS: Readonly<Record<string, string | undefined>> = {
  'net/ipv4/ip_forward': '1',
  'net/ipv6/conf/all/forwarding': '1',
  'net/ipv4/conf/all/rp_filter': '0',
  'net/bridge/bridge-nf-call-iptables': '1',
  'net/netfilter/nf_conntrack_count': '10',
  'net/netfilter/nf_conntrack_max': '1000',
  'net/ipv4/conf/all/route_localnet': '0',
};

const NODE: Node = {
  kind: 'Node',
  metadata: { name: 'node-1', namespace: '' },
  spec: { podCIDRs: ['10.244.1.0/24'] },
  status: { addresses: [{ type: 'InternalIP', address: '192.168.50.1' }] },
};

/** A node on which nothing is to be said, and a cluster around it, but for the differences. */
export async function preflightWorld(differences: Differences = {}): Promise<World> {
  const { flags = [], node, kernel, sysctls = {}, saves = {}, cluster, services = [], presentMode } = differences;
  const outcome = readCommandLine(['--hostname-override=node-1', ...flags], {
    program: 'nodeplane agent',
    version: '',
    readFile: () => '',
    hostname: 'node-1',
  });
  if (outcome.action !== 'run') throw new Error('output' in outcome ? outcome.output.stderr : outcome.action);
  const held = { ...SYSCTLS, ...sysctls };
  const tables = {
    nft: await inSlices(parseSave(saves.nft ?? '')),
    legacy: await inSlices(parseSave(saves.legacy ?? '')),
  };
  const underlay = { index: 2, name: 'eth0', mtu: 1500, address: parseIp('192.168.50.1'), prefixes: [], routed: [] };
  return {
    config: outcome.config,
    warnings: outcome.messages.flatMap(({ level, text }) => (level === 'warn' ? [text] : [])),
    presentMode,
    conflistFile: '10-nodeplane.conflist',
    pluginType: 'nodeplane-cni',
    node: {
      kernel: {
        nftables: () => undefined,
        iptables: async () => ({ variant: 'nft', reason: 'iptables is this variant', hasNat: true }),
        hasLinkKind: () => true,
        hasNexthops: () => true,
        hasIpvs: () => true,
        missingSetTypes: () => [],
        hasConntrack: () => true,
        ...kernel,
      },
      whyNoIpv6: () => undefined,
      capabilities: () => new Set(['NET_ADMIN', 'NET_RAW', 'SYS_ADMIN', 'DAC_OVERRIDE'] as const),
      sysctl: (name) => held[name],
      sysctls: () => [
        ...new Set(Object.keys(held).flatMap((name) => /^net\/ipv4\/conf\/([^/]+)\//.exec(name)?.[1] ?? [])),
      ],
      isProcSysWritable: () => true,
      links: () => [],
      addresses: () => [{ index: 2, address: parseIp('192.168.50.1'), prefixLength: 24 } as never],
      routes: () => [],
      underlay: (family) => (family === 'IPv4' ? underlay : undefined),
      iptables: async (family, variant) => (family === 'IPv4' ? tables[variant] : new Map()),
      nftables: () => ({ tables: [], chains: [] }),
      refusals: () => [],
      listeners: () => [],
      files: () => [],
      text: () => undefined,
      ...node,
    },
    cluster: {
      origin: { kind: 'api', server: 'https://192.168.50.9:6443', host: '192.168.50.9', by: '--kubeconfig' },
      objects: async () => ({ node: NODE, services, problems: [], doubts: [] }),
      server: async () => ({ version: 'v1.36.2', aheadSeconds: 0 }),
      kubeadmConfig: async () => 'proxy:\n  disabled: true\n',
      ...cluster,
    },
  };
}

/** What one check says about such a world. */
export async function look(name: string, differences: Differences = {}) {
  const check = CHECKS.find((one) => one.name === name);
  if (!check) throw new Error(`There is no check "${name}"`);
  return await check.look(await preflightWorld(differences));
}

/** A link as the kernel would describe it. */
export function link(name: string, more: Partial<Link> = {}): Link {
  return {
    index: 7,
    name,
    flags: 0,
    up: true,
    mtu: 1500,
    address: new Uint8Array(6),
    master: 0,
    peerIndex: 0,
    peerNetnsId: undefined,
    kind: '',
    operState: 6,
    alias: '',
    bridgePort: undefined,
    vlanFiltering: false,
    showsToRules: [],
    toListenersAlone: false,
    hasXdp: false,
    vlanId: undefined,
    vxlan: undefined,
    unknown: [],
    ...more,
  };
}

/** A VXLAN device of others. */
export function vxlanLink(name: string, more: { vni?: number; port?: number; metadata?: boolean } = {}): Link {
  const { vni = 1, port = 8472, metadata = false } = more;
  return link(name, { kind: 'vxlan', vxlan: { vni, port, metadata } as Link['vxlan'] });
}

/** A Service of namespace shop. */
export function shopService(name: string, spec: Service['spec'], status?: Service['status']): Service {
  return { kind: 'Service', metadata: { name, namespace: 'shop' }, spec, ...(status && { status }) };
}
