import { Counter, type Registry } from 'prom-client';
import { IP_FAMILIES, type IpFamily, tellFailure } from '../../core/index.ts';
import { closing } from '../../netlink/index.ts';
import type { NftReader } from '../../netlink/nftables/index.ts';
import { unencryptedDropped } from '../../routes/index.ts';

/**
 * Registers the counter of what the rules dropped because it would have left unencrypted, read from the kernel at each scrape. It
 * begins anew with the table; while there is none it is 0.
 *
 * @param open opens nf_tables in the node's namespace
 */
export function registerEncryptionMetrics(registry: Registry, open: () => NftReader & { close(): void }): void {
  new Counter({
    name: 'nodeplane_routes_unencrypted_dropped_packets_total',
    help: 'Packets to pods of other nodes that were dropped because they would have left unencrypted, since the rules were made.',
    labelNames: ['ip_family'],
    registers: [registry],
    collect() {
      const counted = droppedPackets(open);
      this.reset();
      for (const [ip_family, packets] of counted) this.inc({ ip_family }, Number(packets));
    },
  });
}

/** What cannot be read is told, and does not keep the other metrics from being shown. */
function droppedPackets(open: () => NftReader & { close(): void }): (readonly [IpFamily, bigint])[] {
  try {
    return closing(open(), (ruleset) =>
      IP_FAMILIES.map((family) => [family, unencryptedDropped(ruleset, family) ?? 0n] as const),
    );
  } catch (error) {
    tellFailure('counters of unencrypted packets', error);
    return [];
  }
}
