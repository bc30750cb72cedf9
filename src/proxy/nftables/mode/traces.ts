import type { IpFamily } from '../../../core/index.ts';
import { Nftables } from '../../../netlink/nftables/index.ts';
import type { Trace } from '../../index.ts';
import { cleanupNftables } from '../cleanup.ts';

/** Our table and a kube-proxy's. */
export function nftablesTraces(family: IpFamily): Trace[] {
  return [
    {
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
    },
  ];
}

function withNftables<T>(use: (nft: Nftables) => T): T {
  const nft = Nftables.open();
  try {
    return use(nft);
  } finally {
    nft.close();
  }
}
