import type { IpFamily } from '../../core/index.ts';
import { tunnelKind } from '../../routes/index.ts';
import type { Check, World } from '../check.ts';
import { fails, type Outcome, ok, skipped, unknown, warning } from '../finding.ts';

// What the kernel can do, by what the configured mode and parts need. What they do not need is told all the same: whoever
// thinks of another mode reads it here.

const INSTALL = 'install or load the module, or choose another --proxy-mode';

function families({ node }: World): IpFamily[] {
  return node.whyNoIpv6() === undefined ? ['IPv4', 'IPv6'] : ['IPv4'];
}

/** Something that is there or not, for those who need it. */
function feature(name: string, isThere: boolean, neededBy: string | undefined, remedy: string): Outcome {
  if (isThere) return ok(`the kernel has ${name}`);
  const message = `the kernel has no ${name}`;
  return neededBy === undefined
    ? ok(`${message}; it is not needed as configured`)
    : fails(`${message}, which ${neededBy} needs`, remedy);
}

const ipv6: Check = {
  name: 'kernel.ipv6',
  look({ node, config }) {
    const missing = node.whyNoIpv6();
    if (missing === undefined) return ok('IPv6 is there');
    const wants = config.nodeIp?.family === 'IPv6';
    if (wants)
      return fails(`${missing}, and --bind-address names an IPv6 address`, 'enable IPv6, or name an IPv4 address');
    return ok(`${missing}; IPv4 is served alone`);
  },
};

const nftables: Check = {
  name: 'kernel.nftables',
  look(world) {
    const { config, node } = world;
    const needs = [
      ...(config.mode === 'nftables' ? ['mode nftables'] : []),
      ...(config.cni ? ['--cni'] : []),
      ...(config.routes ? ['--routes'] : []),
    ];
    const missing = families(world).flatMap((family) => node.kernel.nftables(family) ?? []);
    if (missing.length === 0) return ok('nf_tables has all that mode nftables needs');
    if (missing.some((text) => text.includes('CAP_NET_ADMIN')))
      return unknown(missing[0]!, 'run it with CAP_NET_ADMIN');
    if (needs.length === 0) return ok(`${missing.join('; ')}; it is not needed as configured`);
    return fails(`${missing.join('; ')}, which ${needs.join(' and ')} needs`, INSTALL);
  },
};

const iptables: Check = {
  name: 'kernel.iptables',
  async look(world) {
    const { config, node } = world;
    const isNeeded = config.mode !== 'nftables';
    const said: string[] = [];
    for (const family of families(world)) {
      try {
        const { variant, reason, hasNat, said: words } = await node.kernel.iptables(family);
        if (hasNat === undefined) {
          const message = `iptables-${variant} is there for ${family} (${reason}); whether the kernel has NAT for it cannot be told without making its tables`;
          return isNeeded
            ? unknown(message, 'run it with CAP_SYS_ADMIN: it asks in a network namespace of its own then')
            : ok(message);
        }
        if (!hasNat) return lacking(`${family}: ${words}`, isNeeded);
        said.push(`${family}: iptables-${variant}, because ${reason}`);
      } catch (error) {
        return lacking(`${family}: ${(error as Error).message}`, isNeeded);
      }
    }
    return ok(said.join('; '));
  },
};

function lacking(message: string, isNeeded: boolean): Outcome {
  return isNeeded
    ? fails(message, 'install iptables, load iptable_nat or nft_compat, or choose --proxy-mode nftables')
    : ok(`${message}; it is not needed as configured`);
}

const ipvs: Check = {
  name: 'kernel.ipvs',
  look({ config, node }) {
    const neededBy = config.mode === 'ipvs' ? 'mode ipvs' : undefined;
    if (!node.kernel.hasIpvs()) return feature('IPVS (module ip_vs)', false, neededBy, INSTALL);
    return feature('dummy devices, besides IPVS,', node.kernel.hasLinkKind('dummy'), neededBy, INSTALL);
  },
};

const ipset: Check = {
  name: 'kernel.ipset',
  look({ config, node }) {
    const missing = node.kernel.missingSetTypes();
    const neededBy = config.mode === 'ipvs' ? 'mode ipvs' : undefined;
    return feature(
      missing.length === 0 ? 'the ipset types of mode ipvs' : `ipset type ${missing.join(', ')}`,
      missing.length === 0,
      neededBy,
      INSTALL,
    );
  },
};

const conntrack: Check = {
  name: 'kernel.conntrack',
  look: ({ node }) =>
    feature(
      'connection tracking',
      node.kernel.hasConntrack(),
      'every mode',
      'load nf_conntrack and nf_conntrack_netlink',
    ),
};

const bridge: Check = {
  name: 'kernel.bridge',
  look: ({ config, node }) =>
    feature(
      'bridges',
      node.kernel.hasLinkKind('bridge'),
      config.cni && '--cni',
      'load the module bridge, or install a conflist with "mode": "routed"',
    ),
};

const vxlan: Check = {
  name: 'kernel.vxlan',
  look({ config: { routes }, node }) {
    const neededBy = routes && tunnelKind(routes) === 'vxlan' ? `--routes ${routes.mode}` : undefined;
    return feature(
      'VXLAN',
      node.kernel.hasLinkKind('vxlan'),
      neededBy,
      'load the module vxlan, or use --routes host-gw',
    );
  },
};

const wireguard: Check = {
  name: 'kernel.wireguard',
  look({ config: { routes }, node }) {
    const neededBy = routes && tunnelKind(routes) === 'wireguard' ? `--routes ${routes.mode}` : undefined;
    const remedy = 'load the module wireguard (Linux 5.6 or newer), or use another --routes';
    return feature('WireGuard', node.kernel.hasLinkKind('wireguard'), neededBy, remedy);
  },
};

const nexthops: Check = {
  name: 'kernel.nexthops',
  look({ config, node }) {
    if (node.kernel.hasNexthops()) return ok('the kernel has nexthop objects');
    if (!config.routes) return skipped('nexthop objects: only --routes uses them');
    return warning(
      'the kernel has no nexthop objects, so a route costs more the more nodes there are',
      'beyond 1,000 nodes: Linux 5.3 or newer',
    );
  },
};

export const KERNEL_CHECKS: readonly Check[] = [
  ipv6,
  nftables,
  iptables,
  ipvs,
  ipset,
  conntrack,
  bridge,
  vxlan,
  wireguard,
  nexthops,
];
