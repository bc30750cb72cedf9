import type { Cidr, IpFamily } from '../../../core/index.ts';
import { Netlink } from '../../../netlink/index.ts';
import { Nftables } from '../../../netlink/nftables/index.ts';
import { getLink } from '../../../netlink/route/index.ts';
import type { ProxyMode } from '../../../proxy/index.ts';
import { cleanupIptables } from '../../../proxy/iptables/index.ts';
import { cleanupIpvs, IPVS_DEVICE, IpvsDataplane, type IpvsKernel, openIpvsKernel } from '../../../proxy/ipvs/index.ts';
import { cleanupNftables } from '../../../proxy/nftables/index.ts';
import { type IptablesTool, iptablesTool } from '../../../proxy/rules/index.ts';
import type { Exec } from '../../../sys/index.ts';

/** One place in the kernel where a mode keeps what is its own, in one family. */
export interface Place {
  /** For people: `iptables-nft IPv4`. */
  readonly name: string;
  /** Whether there is such a place on this machine. Looking must not make one. */
  isUsable(): Promise<boolean>;
  /** Whether a proxy works here, as far as one look tells; false makes a closer one needless. @default perhaps */
  isInUse?(): boolean;
  /** Removes what is ours or a kube-proxy's, and nothing else; nothing there is no error. */
  clean(): Promise<void>;
  /**
   * Gives way to another mode, whose rules stand: as `clean`, but established connections may finish. Ends early, with the
   * rest left as it is, when `signal` aborts. Missing: `clean` does not end connections.
   */
  retire?(signal: AbortSignal): Promise<void>;
}

/** What looking for a mode's state needs. */
export interface PlaceOptions {
  readonly exec: Exec;
  /** Virtual servers of IPVS in these ranges are not ours, unless we made them. @default none */
  readonly excludeCidrs?: readonly Cidr[];
}

/** Where `mode` keeps its state in the kernel. */
export function placesOf(mode: ProxyMode, family: IpFamily, { exec, excludeCidrs = [] }: PlaceOptions): Place[] {
  switch (mode) {
    case 'iptables':
      return VARIANTS.map((variant) => iptablesPlace(family, iptablesTool(family, variant, exec)));
    case 'nftables':
      return [nftablesPlace(family)];
    case 'ipvs':
      return [ipvsPlace(family, exec, excludeCidrs)];
  }
}

const VARIANTS = ['nft', 'legacy'] as const;

function iptablesPlace(family: IpFamily, tool: IptablesTool): Place {
  return {
    name: `iptables-${tool.variant} ${family}`,
    isUsable: () => isUsable(tool),
    clean: () => cleanupIptables(tool),
  };
}

/** Listing shows it without loading the variant's tables into the kernel, as any other request would. */
async function isUsable(tool: IptablesTool): Promise<boolean> {
  try {
    await tool.saveAll();
    return true;
  } catch {
    return false;
  }
}

function nftablesPlace(family: IpFamily): Place {
  return {
    name: `nftables ${family}`,
    async isUsable() {
      try {
        withNftables((nft) => nft.listTables());
        return true;
      } catch {
        return false;
      }
    },
    async clean() {
      withNftables((nft) => cleanupNftables(nft, family));
    },
  };
}

function withNftables<T>(use: (nft: Nftables) => T): T {
  const nft = Nftables.open();
  try {
    return use(nft);
  } finally {
    nft.close();
  }
}

/** Rules of either variant of iptables, and what is not rules: they refer to it, so it goes last. */
function ipvsPlace(family: IpFamily, exec: Exec, excludeCidrs: readonly Cidr[]): Place {
  const usableTools = async () => {
    const tools = VARIANTS.map((variant) => iptablesTool(family, variant, exec));
    const usable = await Promise.all(tools.map(isUsable));
    return tools.filter((_, index) => usable[index]);
  };
  const removeRules = async () => {
    const tools = await usableTools();
    for (const tool of tools) await cleanupIpvs({ tool, kernel: undefined });
    return tools[0]!;
  };
  return {
    name: `IPVS ${family}`,
    isUsable: async () => (await usableTools()).length > 0,
    isInUse: hasIpvsDevice,
    async clean() {
      const tool = await removeRules();
      const kernel = tryOpenIpvs(family);
      if (!kernel) return;
      try {
        await cleanupIpvs({ tool, kernel, excludeCidrs });
      } finally {
        kernel.close();
      }
    },
    async retire(signal) {
      const { variant } = await removeRules();
      const kernel = tryOpenIpvs(family);
      if (!kernel) return;
      const dataplane = new IpvsDataplane({ family, variant, exec, kernel, excludeCidrs });
      const close = () => dataplane.close();
      signal.addEventListener('abort', close, { once: true });
      try {
        if (!signal.aborted) await dataplane.retire();
      } finally {
        signal.removeEventListener('abort', close);
        close();
      }
    },
  };
}

/** Without the device no packet reaches a virtual server, and reading all rules costs time and memory. */
function hasIpvsDevice(): boolean {
  const route = Netlink.openRoute();
  try {
    return getLink(route, { name: IPVS_DEVICE }) !== undefined;
  } finally {
    route.close();
  }
}

/** Undefined when the kernel has no IPVS, or nobody has loaded it: then there is nothing of it. */
function tryOpenIpvs(family: IpFamily): IpvsKernel | undefined {
  try {
    return openIpvsKernel(family);
  } catch {
    return undefined;
  }
}
