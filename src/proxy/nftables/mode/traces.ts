import type { IpFamily } from '../../../core/index.ts';
import { closing } from '../../../netlink/index.ts';
import { Nftables } from '../../../netlink/nftables/index.ts';
import type { Trace } from '../../index.ts';
import { cleanupNftables } from '../cleanup.ts';
import { TABLE_NAME } from '../compile/names.ts';

/** Our table and a kube-proxy's. */
export function nftablesTraces(family: IpFamily): Trace[] {
  return [
    {
      name: `nftables ${family}`,
      async isUsable() {
        try {
          closing(Nftables.open(), (nft) => nft.listTables());
          return true;
        } catch {
          return false;
        }
      },
      async clean(removals) {
        closing(Nftables.open(), (nft) => cleanupNftables(nft, family, undefined, removals));
      },
      async cleanOwn(removals) {
        closing(Nftables.open(), (nft) => cleanupNftables(nft, family, [TABLE_NAME], removals));
      },
    },
  ];
}
