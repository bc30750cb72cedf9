import {
  errorText,
  formatIp,
  formatIpPort,
  IP_PROTOCOLS,
  type IpFamily,
  type IpProtocol,
  parseIp,
} from '../../../core/index.ts';
import { type Flow, type FlowListing, walkFlows } from '../../../netlink/conntrack/index.ts';
import { withNetlink } from '../../../netlink/index.ts';
import { NETLINK_NETFILTER } from '../../../netlink/uapi/index.ts';
import { needCapability } from '../../../sys/index.ts';
import type { PortReport } from '../status.ts';

/** The tracked connections of a Service port on this node. */
export interface PortConnections {
  readonly family: IpFamily;
  readonly port: number;
  readonly protocol: string;
  readonly total: number;
  /** There are more than were counted. */
  readonly isMore: boolean;
  /** By who serves them, the most first. */
  readonly endpoints: readonly { readonly endpoint: string; readonly connections: number }[];
}

/** Enough to see how they are spread; the table of a busy node has millions. */
const MOST_FLOWS = 100_000;

/**
 * Counts the connections that the kernel tracks to the ports of a Service. The kernel picks them by address and port: what others
 * have open costs little. Needs CAP_NET_ADMIN.
 *
 * @returns a count for each port, or in words why there is none
 */
export function connectionsOf(ports: readonly PortReport[]): readonly PortConnections[] | string {
  try {
    needCapability('NET_ADMIN', 'read connections');
    return withNetlink(NETLINK_NETFILTER, (netlink) =>
      ports.map((port) => {
        const flows = function* () {
          for (const listing of listingsOf(port)) yield* walkFlows(netlink, listing);
        };
        return countConnections(port, flows());
      }),
    );
  } catch (error) {
    return errorText(error);
  }
}

/** Counts flows to the addresses of a port by who answers them. Pure. */
function countConnections({ family, port, protocol }: PortReport, flows: Iterable<Flow>): PortConnections {
  const counts = new Map<string, number>();
  let total = 0;
  let isMore = false;
  for (const { original, reply } of flows) {
    // Whoever is answered by the very address it asked was not translated: it asked a process at a number like ours.
    if (formatIp(original.destination) === formatIp(reply.source) && original.destinationPort === reply.sourcePort) {
      continue;
    }
    if (total === MOST_FLOWS) {
      isMore = true;
      break;
    }
    total++;
    const endpoint = formatIpPort(reply.source, reply.sourcePort);
    counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
  }
  const endpoints = [...counts].map(([endpoint, connections]) => ({ endpoint, connections }));
  endpoints.sort((a, b) => b.connections - a.connections);
  return { family, port, protocol, total, isMore, endpoints };
}

function listingsOf({ family, protocol, port, nodePort, clusterIp, ...others }: PortReport): readonly FlowListing[] {
  const number = IP_PROTOCOLS[protocol as IpProtocol];
  const addresses = [clusterIp, ...others.externalIps, ...others.loadBalancerVips].map(parseIp);
  return [
    ...addresses.map((ip) => ({ family, destination: { protocol: number, port, ip } })),
    ...(nodePort === 0 ? [] : [{ family, destination: { protocol: number, port: nodePort } }]),
  ];
}
