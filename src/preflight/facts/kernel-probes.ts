import { ifPresent } from '../../core/index.ts';
import { walkFlows } from '../../netlink/conntrack/index.ts';
import { type Netlink, resolveFamily, withNetlink } from '../../netlink/index.ts';
import { IPVS_GENL_NAME } from '../../netlink/ipvs/index.ts';
import { Nftables } from '../../netlink/nftables/index.ts';
import { hasLinkKind } from '../../netlink/route/index.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../../netlink/uapi/index.ts';
import { missingSetTypes } from '../../proxy/ipvs/index.ts';
import { checkNftables } from '../../proxy/nftables/index.ts';
import { detectVariant, type IptablesVariant, whyIptablesMissing } from '../../proxy/rules/index.ts';
import { hasNexthops } from '../../routes/index.ts';
import { type Exec, legacyTables, readSysctl } from '../../sys/index.ts';
import type { IptablesProbe, KernelProbes } from './node-facts.ts';

/** How the kernel is asked. */
export interface ProbeOptions {
  readonly exec: Exec;
  /** Undefined: the one the node uses. */
  readonly variant: IptablesVariant | undefined;
}

/** The kernel of this machine, in the network namespace of the calling thread. */
export function kernelProbes({ exec, variant: wanted }: ProbeOptions): KernelProbes {
  return {
    nftables: (family) => checkNftables(() => Nftables.open(), family),
    async iptables(family): Promise<IptablesProbe> {
      const { variant, reason } = await detectVariant(family, exec, wanted);
      if (variant === 'legacy' && legacyTables(family)?.includes('nat')) return { variant, reason, hasNat: true };
      const elsewhere = inNewNamespace(exec);
      if (!(await canMakeNamespaces(elsewhere))) return { variant, reason, hasNat: undefined };
      const said = await whyIptablesMissing(family, variant, elsewhere);
      return { variant, reason, hasNat: said === undefined, said: said ?? '' };
    },
    hasLinkKind: (kind) => withNetlink(NETLINK_ROUTE, (netlink) => hasLinkKind(netlink, kind)),
    hasNexthops: () => withNetlink(NETLINK_ROUTE, hasNexthops),
    hasIpvs: () => {
      const resolve = (netlink: Netlink) => ifPresent(() => resolveFamily(netlink, IPVS_GENL_NAME));
      return withNetlink(NETLINK_GENERIC, resolve) !== undefined;
    },
    missingSetTypes,
    hasConntrack: () => {
      if (hasSysctl('net/netfilter/nf_conntrack_max')) return true;
      // Not loaded: then it has no flows, and listing them loads it.
      withNetlink(NETLINK_NETFILTER, (netlink) => walkFlows(netlink, { family: 'IPv4' }).next());
      return true;
    },
  };
}

/** Programs get an empty network namespace of their own, which goes with them. There they may make what they need. */
function inNewNamespace(exec: Exec): Exec {
  return (program, args, options) =>
    exec('unshare', ['--net', program, ...args], {
      ...options,
      // Nobody else is there to be kept out, and the file of the lock would stay.
      env: { ...options?.env, XTABLES_LOCKFILE: '/dev/null' },
    });
}

async function canMakeNamespaces(elsewhere: Exec): Promise<boolean> {
  try {
    return (await elsewhere('true', [])).status === 0;
  } catch {
    // No such program, or not in time.
    return false;
  }
}

function hasSysctl(name: string): boolean {
  return ifPresent(() => readSysctl(name)) !== undefined;
}
