import { accessSync, constants, readdirSync } from 'node:fs';
import { refusalsOf } from '../../cni/index.ts';
import { attempt, errorText, IP_FAMILIES, type IpFamily, ifPresent, readGivenFile } from '../../core/index.ts';
import { closing, withNetlink } from '../../netlink/index.ts';
import { Nftables } from '../../netlink/nftables/index.ts';
import { listAddresses, listLinks, listRoutes } from '../../netlink/route/index.ts';
import { NETLINK_ROUTE, RT_TABLE_MAIN } from '../../netlink/uapi/index.ts';
import { type IptablesVariant, iptablesTool } from '../../proxy/rules/index.ts';
import { NetlinkRouteKernel } from '../../routes/index.ts';
import { type Exec, legacyTables, ownCapabilities, readSysctl } from '../../sys/index.ts';
import { whyNoIpv6 } from './families.ts';
import { kernelProbes, type ProbeOptions } from './kernel-probes.ts';
import { listListeners } from './listeners.ts';
import type { IptablesState, NodeFacts } from './node-facts.ts';

/** What nobody's firewall has, but a proxy of old in a table of its own: who asks before a migration can wait for seconds. */
const REFUSAL_LIMITS = { rules: 20_000, chains: 5_000, bytes: 20_000_000 };

/** The facts of this machine, in the network namespace of the calling thread. What is large is read once. */
export function readNode(options: ProbeOptions): NodeFacts {
  const { exec } = options;
  const tables = new Map<string, Promise<IptablesState>>();
  return {
    kernel: kernelProbes(options),
    whyNoIpv6,
    capabilities: ownCapabilities,
    sysctl: (name) => ifPresent(() => readSysctl(name)),
    sysctls: (folder) => readdirSync(`/proc/sys/${folder}`),
    isProcSysWritable() {
      try {
        accessSync('/proc/sys/net/ipv4/ip_forward', constants.W_OK);
        return true;
      } catch {
        return false;
      }
    },
    links: once(() => withNetlink(NETLINK_ROUTE, listLinks)),
    addresses: once(() => withNetlink(NETLINK_ROUTE, (netlink) => listAddresses(netlink, {}))),
    routes: once(() =>
      withNetlink(NETLINK_ROUTE, (netlink) =>
        IP_FAMILIES.flatMap((family) => listRoutes(netlink, { family, table: RT_TABLE_MAIN })),
      ),
    ),
    underlay: (family, choice) => closing(NetlinkRouteKernel.open(family), (kernel) => kernel.attachment(choice)),
    iptables(family, variant) {
      const key = `${family} ${variant}`;
      const known = tables.get(key) ?? readIptables(family, variant, exec);
      tables.set(key, known);
      return known;
    },
    nftables: once(() =>
      closing(Nftables.open(), (nft) => {
        const all = nft.listTables();
        const chains = all.flatMap((table) => nft.listChains(table));
        return { tables: all, chains };
      }),
    ),
    refusals: (packets) => closing(Nftables.open(), (nft) => refusalsOf(nft, packets, REFUSAL_LIMITS)),
    listeners: once(listListeners),
    files: (folder) => ifPresent(() => readdirSync(folder)),
    text: (path) => attempt(() => readGivenFile(path).toString('utf8')),
  };
}

async function readIptables(family: IpFamily, variant: IptablesVariant, exec: Exec): Promise<IptablesState> {
  try {
    return await iptablesTool(family, variant, exec).saveAll();
  } catch (error) {
    // Where the kernel has none of its tables in use, there is nothing that could not be read.
    if (variant === 'legacy' && legacyTables(family)?.length === 0) return new Map();
    return { unreadable: errorText(error) };
  }
}

function once<T>(read: () => T): () => T {
  let known: { readonly value: T } | undefined;
  return () => {
    known ??= { value: read() };
    return known.value;
  };
}
