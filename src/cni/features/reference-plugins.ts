import { createHash } from 'node:crypto';
import { IP_FAMILIES, isNotFound } from '../../core/index.ts';
import { type ChainRef, type NftChange, type NftReader, nftFamily } from '../../netlink/nftables/index.ts';
import { withRuleset } from '../link/sockets.ts';
import type { AttachmentKey } from '../protocol/attachment-key.ts';
import type { AttachmentFeature } from './feature.ts';
import { leadsTo } from './tables/forward-rules.ts';
import { retried } from './tables/pod-ruleset.ts';

/** What begins the names of an attachment's chains, and the chain that leads to them. */
const CHAINS = [
  { prefix: 'CNI-DN-', entry: 'CNI-HOSTPORT-DNAT' },
  { prefix: 'CNI-', entry: 'POSTROUTING' },
] as const;
/** The longest name of a chain iptables takes, less the zero byte. */
const NAME_LENGTH = 28;

/**
 * What the reference plugins made for a pod while the node was theirs: portmap's translation of host ports, and the
 * masquerade of bridge and ptp. Both are chains of iptables-nft's table nat. Their own DEL does not come any more, when the
 * configuration does not list them any more; the rules would lead the pod's host ports to an address that somebody else has
 * by then, before rules of ours see the packets.
 *
 * What they made by legacy iptables cannot be removed by netlink, and stays.
 */
export const referencePlugins: AttachmentFeature = {
  name: 'reference-plugins',
  wantedIn: () => ({}),
  setUp: () => [],
  check: () => [],

  tearDown({ key }) {
    withRuleset((ruleset) =>
      retried(isNotFound, () => {
        const changes = removals(ruleset, key);
        if (changes.length > 0) ruleset.commit(changes);
      }),
    );
  },

  // From the name of a chain nobody can tell which network it belongs to.
  collect: () => undefined,
};

function removals(ruleset: NftReader, key: AttachmentKey): NftChange[] {
  return IP_FAMILIES.flatMap((family) =>
    CHAINS.flatMap(({ prefix, entry }) => {
      const chain = natChain(nftFamily(family), chainName(prefix, key));
      // One request for one chain: the table may hold a proxy's by the thousand.
      if (ruleset.listRules(chain).length === 0) return [];
      const jumps = ruleset.listRules(natChain(chain.family, entry)).filter((rule) => leadsTo(rule, chain.name));
      return [
        ...jumps.map((object): NftChange => ({ operation: 'delete', object })),
        { operation: 'flush', object: chain } as const,
        { operation: 'delete', object: chain } as const,
      ];
    }),
  );
}

/** As the reference plugins' utils.FormatChainName makes it: of the network's name and the container's ID. */
function chainName(prefix: string, { network, owner }: AttachmentKey): string {
  const digest = createHash('sha512').update(`${network}${owner.containerId}`).digest('hex');
  return `${prefix}${digest}`.slice(0, NAME_LENGTH);
}

function natChain(family: ChainRef['family'], name: string): ChainRef {
  return { kind: 'chain', family, table: 'nat', name };
}
