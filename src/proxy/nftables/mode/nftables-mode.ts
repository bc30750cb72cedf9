import { type IpFamily, NodeplaneError } from '../../../core/index.ts';
import { Nftables, watchNftables } from '../../../netlink/nftables/index.ts';
import type { Mode } from '../../index.ts';
import { checkNftables } from '../check-nftables.ts';
import { NftablesDataplane } from '../dataplane.ts';
import { NFTABLES_METRICS } from './metrics.ts';
import { nftablesTraces } from './traces.ts';

/** Services as elements of nf_tables maps. What the rules need of the kernel is tried out before, for each family. */
export const nftablesMode: Mode<unknown> = {
  async prepare(_, { families }) {
    const open = () => Nftables.open();
    const unserved = new Map<IpFamily, string>();
    for (const family of families) {
      const missing = checkNftables(open, family);
      if (missing !== undefined) unserved.set(family, missing);
    }
    const usable = families.filter((family) => !unserved.has(family));
    if (usable.length === 0) {
      throw new NodeplaneError('ERR_NFTABLES', `Cannot run in mode nftables: ${unserved.get(families[0]!)}`);
    }
    return {
      families: usable,
      unserved,
      begin: () => (family, hooks) =>
        new NftablesDataplane({
          family,
          open,
          watch: (listener) => watchNftables(listener, { withoutOwn: true }),
          onForeignChange: hooks.changedByOthers,
        }),
    };
  },
  traces: nftablesTraces,
  // IPVS comes last: it is not waited for, and would remove the same rules as iptables at the same time.
  replaces: ['iptables', 'ipvs'],
  flowProtocols: ['UDP', 'SCTP'],
  unansweredProtocols: ['TCP'],
  localhostProtocols: ['TCP', 'UDP', 'SCTP'],
  metrics: NFTABLES_METRICS,
};
