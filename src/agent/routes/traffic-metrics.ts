import { Counter, type Registry } from 'prom-client';
import { tellFailure } from '../../core/index.ts';
import { withNetlink } from '../../netlink/index.ts';
import { getLinkTraffic, type LinkTraffic } from '../../netlink/route/index.ts';
import { NETLINK_ROUTE } from '../../netlink/uapi/index.ts';
import { TUNNEL_NAMES, WIREGUARD_NAME } from '../../routes/index.ts';

const COUNTS = {
  packetsIn: ['packets_in', 'Packets from other nodes through the tunnel'],
  packetsOut: ['packets_out', 'Packets to other nodes through the tunnel'],
  bytesIn: ['bytes_in', 'Bytes from other nodes through the tunnel, without what carries them'],
  bytesOut: ['bytes_out', 'Bytes to other nodes through the tunnel, without what carries them'],
} as const satisfies Record<keyof LinkTraffic, readonly [name: string, help: string]>;

/** What carries packets of the families, by the label of the metrics. WireGuard's device carries those of both. */
const DEVICES: Readonly<Record<string, string>> = { ...TUNNEL_NAMES, any: WIREGUARD_NAME };

/**
 * Registers the counters of our tunnel devices, read from the kernel at each scrape. They begin anew with the device; a family
 * without one has none.
 */
export function registerTunnelMetrics(registry: Registry): void {
  const counters = new Map<keyof LinkTraffic, Counter<'ip_family'>>();
  // The registry asks its metrics in the order in which they came: the first reads the kernel for all.
  const read = () => {
    for (const counter of counters.values()) counter.reset();
    for (const [ip_family, traffic] of tunnelTraffic()) {
      for (const [key, counter] of counters) counter.inc({ ip_family }, Number(traffic[key]));
    }
  };
  for (const [key, [name, what]] of Object.entries(COUNTS)) {
    const counter = new Counter({
      name: `nodeplane_routes_tunnel_${name}_total`,
      help: `${what}, since its device was made.`,
      labelNames: ['ip_family'],
      registers: [registry],
      ...(counters.size === 0 && { collect: read }),
    });
    counters.set(key as keyof LinkTraffic, counter);
  }
}

/** What cannot be read is told, and does not keep the other metrics from being shown. */
function tunnelTraffic(): (readonly [string, LinkTraffic])[] {
  try {
    return withNetlink(NETLINK_ROUTE, (netlink) =>
      Object.entries(DEVICES).flatMap(([family, name]) => {
        const traffic = getLinkTraffic(netlink, name);
        return traffic ? [[family, traffic] as const] : [];
      }),
    );
  } catch (error) {
    tellFailure('tunnel counters', error);
    return [];
  }
}
