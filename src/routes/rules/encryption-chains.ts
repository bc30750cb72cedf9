import { IP_FAMILIES, type IpFamily } from '../../core/index.ts';
import {
  cmp,
  counter,
  drop,
  type Expression,
  goto,
  interfaceName,
  lookup,
  meta,
  type NftReader,
  payload,
  returnToCaller,
} from '../../netlink/nftables/index.ts';
import { type ChainWithRules, FILTER, inBlockOf, isFamily } from '../../nft/index.ts';
import { WIREGUARD_NAME } from '../plan/tunnel.ts';
import type { WireguardRules } from './settings.ts';
import { addressSetName, type BlockSet, type BlockSetKind, blockSetName, chainRef } from './table.ts';

/**
 * What goes to pods of other nodes leaves by the WireGuard device, or not at all: also while there is no route to them, because a
 * Node is left out or is not known yet, or somebody has deleted the device. It is dropped and not refused, since it will be sent
 * again, and the device is back in a moment.
 *
 * That is decided behind the routing, and behind every translation of a destination. In the output hook the interface would be
 * the one of before a translation.
 *
 * Let through are packets to this node's own pods, and to other nodes' own addresses, in case a range contains some. So is what
 * is handed to a node itself, on the same link, where packets may go to its pods as they are: what follows the default route is
 * handed to a router.
 *
 * @param blockSets the sets of blocks in use
 */
export function encryptionChains(
  { mayBeDirect }: WireguardRules,
  blockSets: readonly BlockSet[],
): readonly ChainWithRules[] {
  const isTo = (kind: BlockSetKind, family: IpFamily): Expression[][] =>
    blockSets
      .filter((set) => set.kind === kind && set.family === family)
      .map((set) => inBlockOf('daddr', family, { prefixLength: set.prefixLength, set: blockSetName(set) }));
  return [
    ...IP_FAMILIES.map((family) => {
      const isPeer = lookup(addressSetName('peers', family));
      const isToNode = [payload.daddr(family), isPeer];
      const isByNode: Expression[] = [
        { kind: 'rt', key: family === 'IPv4' ? 'nexthop-ip' : 'nexthop-ip6', to: 0 },
        isPeer,
      ];
      const isFine = [...isTo('own', family), isToNode, ...(mayBeDirect ? [isByNode] : [])];
      return {
        chain: chainRef(chainName(family)),
        rules: [
          [meta('oifname'), cmp.equal(interfaceName(WIREGUARD_NAME)), returnToCaller],
          // The family is known here; said again, the rules can be read in the output of `nft`.
          ...isFine.map((matches) => [...isFamily(family), ...matches, returnToCaller]),
          [counter, drop],
        ],
      };
    }),
    {
      chain: { ...chainRef('encryption'), base: { type: 'filter', hook: 'postrouting', priority: FILTER } },
      rules: IP_FAMILIES.flatMap((family) =>
        isTo('encrypted', family).map((matches) => [...isFamily(family), ...matches, goto(chainName(family))]),
      ),
    },
  ];
}

/**
 * How many packets of a family were dropped because they would have left unencrypted, since the table was made; undefined when
 * there are no such rules. Throws KernelError.
 */
export function unencryptedDropped(ruleset: NftReader, family: IpFamily): bigint | undefined {
  const rules = ruleset.listRules(chainRef(chainName(family)));
  return rules.at(-1)?.expressions.find((expression) => expression.kind === 'counter')?.packets;
}

function chainName(family: IpFamily): string {
  return `encrypted-only-${family.toLowerCase()}`;
}
