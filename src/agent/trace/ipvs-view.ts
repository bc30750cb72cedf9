import { existsSync } from 'node:fs';
import { formatIpPort, ipEquals } from '../../core/index.ts';
import { resolveFamily, withNetlink } from '../../netlink/index.ts';
import {
  decodeDestination,
  decodeVirtualServer,
  destinationListing,
  IPVS_GENL_NAME,
  type IpvsConnection,
  type IpvsStatistics,
  type ListedDestination,
  listIpvsConnections,
  type VirtualServerKey,
  virtualServerListing,
} from '../../netlink/ipvs/index.ts';
import { NETLINK_GENERIC } from '../../netlink/uapi/index.ts';
import { tupleText } from './question.ts';
import type { IpvsServerReport } from './trace-report.ts';
import type { TracedTuple } from './trace-table.ts';

/** A virtual server that packets may meet, as it stands at one time. */
export interface IpvsServerView {
  readonly tuple: TracedTuple;
  readonly statistics: IpvsStatistics;
  readonly destinations: readonly ListedDestination[];
}

/** A trace is for people. */
const MOST = 100;

/** The connections of IPVS in the namespace of the calling thread that are asked for; empty without IPVS. */
export function ipvsConnections(tuples: readonly TracedTuple[]): readonly IpvsConnection[] {
  const isAsked = ({ protocol, client, clientPort, virtual, virtualPort }: IpvsConnection): boolean =>
    clientPort !== 0 &&
    tuples.some(
      (tuple) =>
        tuple.protocol === protocol &&
        tuple.port === virtualPort &&
        ipEquals(tuple.destination, virtual) &&
        (!tuple.source || ipEquals(tuple.source, client)),
    );
  return listIpvsConnections(isAsked).slice(0, MOST);
}

/** The virtual servers of IPVS in the namespace of the calling thread that are asked for, those of marks excepted; empty without IPVS. */
export function readIpvs(tuples: readonly TracedTuple[]): readonly IpvsServerView[] {
  // Asking for its messages loads the module.
  if (!existsSync('/proc/thread-self/net/ip_vs')) return [];
  return withNetlink(NETLINK_GENERIC, (netlink) => {
    const family = resolveFamily(netlink, IPVS_GENL_NAME);
    return netlink
      .dump(virtualServerListing(family))
      .map(decodeVirtualServer)
      .flatMap(({ key, statistics }) => {
        const tuple = tuples.find((one) => isOf(one, key));
        if (!tuple) return [];
        const listed = netlink.dump(destinationListing(family, key));
        const destinations = listed.map((payload) => decodeDestination(payload, tuple.destination.family));
        return [{ tuple, statistics, destinations }];
      });
  });
}

function isOf({ destination, port, protocol }: TracedTuple, key: VirtualServerKey): boolean {
  return key.kind === 'address' && key.protocol === protocol && key.port === port && ipEquals(key.address, destination);
}

/** What virtual servers and their destinations carried between two looks at them, for anybody. Pure. */
export function compareIpvs(
  before: readonly IpvsServerView[],
  after: readonly IpvsServerView[],
): readonly IpvsServerReport[] {
  return after.map(({ tuple, statistics, destinations }) => {
    const server = tupleText(tuple);
    const then = before.find((one) => tupleText(one.tuple) === server);
    const since = (name: keyof IpvsStatistics) => Number(statistics[name] - (then?.statistics[name] ?? 0n));
    return {
      server,
      connections: since('connections'),
      packetsIn: since('packetsIn'),
      packetsOut: since('packetsOut'),
      destinations: destinations.map((destination) => {
        const { address, port, weight } = destination;
        const old = then?.destinations.find((one) => one.port === port && ipEquals(one.address, address));
        const counts = (name: 'activeConnections' | 'inactiveConnections') =>
          [old?.[name] ?? 0, destination[name]] as const;
        return {
          address: formatIpPort(address, port),
          weight,
          active: counts('activeConnections'),
          inactive: counts('inactiveConnections'),
        };
      }),
    };
  });
}
