import type { KubeProxyConfig } from '../../config/index.ts';
import { settingName } from '../../core/index.ts';
import type { Capability } from '../../sys/index.ts';
import type { Check, World } from '../check.ts';
import { fails, firstFew, type Outcome, ok, skipped, warning } from '../finding.ts';

/** What of the connection tracking table is in use when people should look, and when connections are refused soon. */
const CONNTRACK_WARNING = 0.75;
const CONNTRACK_FAILS = 0.9;

const capabilities: Check = {
  name: 'node.capabilities',
  look({ config, node }) {
    const held = node.capabilities();
    const missing = neededCapabilities(config).filter(({ name }) => !held.has(name));
    if (missing.length === 0) return ok('this process has the capabilities that the agent needs');
    const message = `this process has no ${missing.map(({ name, why }) => `CAP_${name} (${why})`).join(', ')}`;
    const remedy = 'the agent’s own container has to have them; this one may do without';
    return held.has('NET_ADMIN')
      ? warning(message, remedy)
      : fails(message, 'run it as root, or grant CAP_NET_ADMIN: most rules cannot be read without');
  },
};

/** docs/security.md has the reasons at length. */
function neededCapabilities({ mode, cni, iptablesVariant }: KubeProxyConfig): { name: Capability; why: string }[] {
  return [
    { name: 'NET_ADMIN', why: 'rules, routes and links' },
    ...(mode !== 'nftables' && iptablesVariant !== 'nft' ? [{ name: 'NET_RAW', why: 'iptables-legacy' } as const] : []),
    ...(cni
      ? ([
          { name: 'SYS_ADMIN', why: 'namespaces of pods' },
          { name: 'DAC_OVERRIDE', why: 'plugin folders of other owners' },
        ] as const)
      : []),
  ];
}

const procSys: Check = {
  name: 'node.proc-sys',
  look({ node }) {
    if (node.isProcSysWritable()) return ok('/proc/sys can be written');
    return warning(
      '/proc/sys is read-only here, as in every container that is not privileged',
      'let an init container that is privileged run the agent with --init-only, or set the sysctls on the node',
    );
  },
};

const forwarding: Check = {
  name: 'node.forwarding',
  look(world) {
    const names = [
      'net/ipv4/ip_forward',
      ...(world.node.whyNoIpv6() === undefined ? ['net/ipv6/conf/all/forwarding'] : []),
    ];
    const off = names.filter((name) => world.node.sysctl(name) !== '1');
    if (off.length === 0) return forwardingOfLinks(world.node);
    const message = `${off.map(settingName).join(' and ')} ${off.length > 1 ? 'are' : 'is'} not 1`;
    // The plugin switches it on with the first pod, and mode ipvs at its start.
    if (world.config.cni) return ok(`${message}; the first pod’s ADD sets it`);
    const remedy = off.map((name) => `sysctl -w ${settingName(name)}=1`).join('; ');
    const isOnlyIpv6 = off.every((name) => name.includes('ipv6'));
    return isOnlyIpv6
      ? warning(message, `${remedy}, if pods have IPv6`)
      : fails(`${message}: pods reach nothing beyond the node`, remedy);
  },
};

/** Of IPv4 that of the link decides by which a packet comes in (ip_route_input_slow, net/ipv4/route.c). */
function forwardingOfLinks(node: World['node']): Outcome {
  const off = node
    .sysctls('net/ipv4/conf')
    .filter((name) => name !== 'lo' && node.sysctl(`net/ipv4/conf/${name}/forwarding`) === '0')
    .sort();
  if (off.length === 0) return ok('packets are forwarded');
  // What links have when they are made.
  const links = off.map((name) => (name === 'default' ? 'links yet to be made' : name));
  return warning(
    `packets are forwarded, but no IPv4 that comes in by ${firstFew(links)}: neither NodePorts nor answers to pods`,
    `where pods send and are reached by them: ${off.map((name) => `sysctl -w ${settingName(`net/ipv4/conf/${name}/forwarding`)}=1`).join('; ')}`,
  );
}

const rpFilter: Check = {
  name: 'node.rp-filter',
  look({ node }) {
    const strict = node
      .sysctls('net/ipv4/conf')
      .filter((name) => name !== 'default' && name !== 'lo' && node.sysctl(`net/ipv4/conf/${name}/rp_filter`) === '1');
    if (strict.length === 0) return ok('no interface has a strict reverse path filter');
    // The larger of "all" and the interface's own counts (Documentation/networking/ip-sysctl.rst).
    if (node.sysctl('net/ipv4/conf/all/rp_filter') === '2')
      return ok('the reverse path filter is loose for all interfaces');
    return warning(
      `the reverse path filter is strict (rp_filter=1) on ${firstFew(strict.sort())}: packets that come by another interface than the answer takes are dropped`,
      'where nodes have several networks: sysctl -w net.ipv4.conf.all.rp_filter=2',
    );
  },
};

const bridgeNf: Check = {
  name: 'node.bridge-nf',
  look: ({ node }) => bridgeNfOutcome(node.sysctl('net/bridge/bridge-nf-call-iptables')),
};

/**
 * Two pods of one bridge talk without the bridge's packets meeting iptables, unless br_netfilter says otherwise: then the
 * answer of a Service's pod would reach a client on the same bridge untranslated, and be ignored.
 *
 * @param value of net.bridge.bridge-nf-call-iptables; undefined: there is none
 */
export function bridgeNfOutcome(value: string | undefined): Outcome {
  if (value === '1') return ok('packets of bridges meet the rules');
  return warning(
    'Services may not work between pods on the same bridge',
    'run "modprobe br_netfilter" and set the sysctl net.bridge.bridge-nf-call-iptables to 1',
  );
}

const conntrackMax: Check = {
  name: 'node.conntrack-max',
  look({ node }) {
    const [count, max] = ['count', 'max'].map((name) => node.sysctl(`net/netfilter/nf_conntrack_${name}`));
    if (count === undefined || max === undefined) return skipped('connection tracking is not in use yet');
    const share = Number(count) / Number(max);
    const message = `${count} of ${max} tracked connections are in use`;
    if (share < CONNTRACK_WARNING) return ok(message);
    const remedy = 'raise net.netfilter.nf_conntrack_max, or --conntrack-max-per-core';
    return share < CONNTRACK_FAILS
      ? warning(message, remedy)
      : fails(`${message}: new ones are refused when it is full`, remedy);
  },
};

const routeLocalnet: Check = {
  name: 'node.route-localnet',
  look: ({ node }) => routeLocalnetOutcome(node.sysctl('net/ipv4/conf/all/route_localnet')),
};

/** @param value of net.ipv4.conf.all.route_localnet; undefined: there is none */
export function routeLocalnetOutcome(value: string | undefined): Outcome {
  if (value === undefined || value === '0') return ok('neighbours cannot reach what listens on 127.0.0.1');
  // Not switched off by the agent: who did that, and what relies on it, is not to be seen.
  return warning(
    'net.ipv4.conf.all.route_localnet is on, perhaps since a kube-proxy ran here: neighbours reach what listens on 127.0.0.1 unless a rule drops it',
    'Set it to 0 if nothing but NodePorts at 127.0.0.1 was meant; nodeplane does not need it',
  );
}

export const NODE_CHECKS: readonly Check[] = [
  capabilities,
  procSys,
  forwarding,
  rpFilter,
  bridgeNf,
  conntrackMax,
  routeLocalnet,
];
