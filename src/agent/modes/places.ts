import type { IpFamily } from '../../core/index.ts';
import type { ProxyMode } from '../../proxy/index.ts';
import { cleanupIptables } from '../../proxy/iptables/index.ts';
import { iptablesTool } from '../../proxy/rules/index.ts';
import type { Exec } from '../../sys/index.ts';

/** One place in the kernel where a mode keeps what is its own, in one family. */
export interface Place {
  /** For people: `iptables-nft IPv4`. */
  readonly name: string;
  /** Whether there is such a place on this machine. Looking must not make one. */
  isUsable(): Promise<boolean>;
  /** Removes what is ours or a kube-proxy's, and nothing else; nothing there is no error. */
  clean(): Promise<void>;
}

/** Where `mode` keeps its state in the kernel. */
export function placesOf(mode: ProxyMode, family: IpFamily, exec: Exec): Place[] {
  switch (mode) {
    case 'iptables':
      return (['nft', 'legacy'] as const).map((variant) => {
        const tool = iptablesTool(family, variant, exec);
        return {
          name: `iptables-${variant} ${family}`,
          // Listing shows it without loading the variant's tables into the kernel, as any other request would.
          isUsable: () => succeeds(tool.saveAll()),
          clean: () => cleanupIptables(tool),
        };
      });
    case 'nftables':
    case 'ipvs':
      return [];
  }
}

async function succeeds(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch {
    return false;
  }
}
