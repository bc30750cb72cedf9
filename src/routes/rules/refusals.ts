import { IP_FAMILIES, type IpAddress, type IpFamily, ifPresent } from '../../core/index.ts';
import type { NftReader } from '../../netlink/nftables/index.ts';
import { addressSetName, RULES_TABLE, setRef } from './table.ts';
import { REFUSED_CHAIN, refusedPackets } from './tunnel-chains.ts';

/** Packets of one family that the tunnel refused. */
export interface Refusals {
  readonly family: IpFamily;
  readonly packets: number;
  readonly sources: readonly IpAddress[];
}

/** Reads what the tunnel refused, each packet once. */
export class RefusalReader {
  readonly #seen = new Map<IpFamily, bigint>();

  /**
   * What was refused since it was last asked; the first time, what the table has counted before is left out.
   *
   * @throws KernelError; ERR_NETLINK_SOCKET
   */
  read(ruleset: NftReader): Refusals[] {
    const { family: tableFamily, name: table } = RULES_TABLE;
    const rules = ruleset.listRules({ kind: 'chain', family: tableFamily, table, name: REFUSED_CHAIN });
    const bodies = rules.map(({ expressions }) => expressions);
    return IP_FAMILIES.flatMap((family) => {
      const counted = refusedPackets(bodies, family) ?? 0n;
      const seen = this.#seen.get(family);
      this.#seen.set(family, counted);
      if (seen === undefined) return [];
      // A table that was made anew begins with 0.
      const packets = Number(counted >= seen ? counted - seen : counted);
      return packets === 0 ? [] : [{ family, packets, sources: sourcesOf(ruleset, family) }];
    });
  }
}

function sourcesOf(ruleset: NftReader, family: IpFamily): IpAddress[] {
  // Somebody may have removed the table just now.
  const elements = ifPresent(() => ruleset.listElements(setRef(addressSetName('strangers', family)))) ?? [];
  return elements.map(({ key }) => ({ family, bytes: Uint8Array.from(key) }));
}
