import {
  errorText,
  formatIp,
  IP_FAMILIES,
  IP_PROTOCOLS,
  type IpFamily,
  ipEquals,
  ipProtocolName,
  plainText,
  withPort,
} from '../../../core/index.ts';
import { type Flow, walkFlows } from '../../../netlink/conntrack/index.ts';
import { withNetlink } from '../../../netlink/index.ts';
import { NETLINK_NETFILTER } from '../../../netlink/uapi/index.ts';
import { tableLines } from '../../text-table.ts';
import type { PortReport, ServiceReport } from '../status.ts';
import { countText } from '../words.ts';

/** Where translated connections were made to, and how many are tracked. */
export interface Destination {
  readonly family: IpFamily;
  readonly ip: string;
  readonly port: number;
  readonly protocol: string;
  readonly connections: number;
}

/** What of the table of tracked connections goes where. */
export interface TableUse {
  /** All that are tracked. */
  readonly total: number;
  /** Those whose destination was translated, */
  readonly translated: number;
  /** by where they were made to, the most first; as many as a limit allows. */
  readonly destinations: readonly Destination[];
}

/** Whose a destination is; null: no Service's of this node. */
export type NamedDestination = Destination & { readonly service: string | null };

const MOST_SHOWN = 20;
/** Destinations that are counted apart: more have no business on a node, and what is scanned is not to fill the memory. */
const MOST_COUNTED = 100_000;
const NUMBERS: ReadonlySet<number> = new Set(Object.values(IP_PROTOCOLS));

/**
 * Reads the whole table of tracked connections once. Needs CAP_NET_ADMIN; this program does it, not the agent.
 *
 * @returns in words why it cannot be read
 */
export function readTableUse(): TableUse | string {
  try {
    return withNetlink(NETLINK_NETFILTER, (netlink) => {
      const flows = function* () {
        for (const family of IP_FAMILIES) yield* walkFlows(netlink, { family });
      };
      return tableUse(flows());
    });
  } catch (error) {
    return errorText(error);
  }
}

/** Counts tracked connections by where they were made to. Pure. */
export function tableUse(flows: Iterable<Flow>): TableUse {
  const counts = new Map<string, Destination & { connections: number }>();
  let [total, translated] = [0, 0];
  for (const { family, protocol, original, reply } of flows) {
    total++;
    const isAsMade = ipEquals(original.destination, reply.source) && original.destinationPort === reply.sourcePort;
    if (isAsMade || !NUMBERS.has(protocol)) continue;
    translated++;
    const ip = formatIp(original.destination);
    const port = original.destinationPort;
    const key = `${ip} ${port} ${protocol}`;
    const known = counts.get(key);
    if (known) known.connections++;
    else if (counts.size < MOST_COUNTED) {
      counts.set(key, { family, ip, port, protocol: ipProtocolName(protocol)!, connections: 1 });
    }
  }
  const destinations = [...counts.values()].sort((a, b) => b.connections - a.connections).slice(0, MOST_SHOWN);
  return { total, translated, destinations };
}

/** Whose a destination is among these Services. */
export function serviceAt(
  { ip, port, protocol, family }: Destination,
  services: readonly ServiceReport[],
): string | null {
  const isAt = (one: PortReport) =>
    one.family === family &&
    one.protocol === protocol &&
    ((one.port === port && [one.clusterIp, ...one.externalIps, ...one.loadBalancerVips].includes(ip)) ||
      one.nodePort === port);
  return services.find(({ ports }) => ports.some(isAt))?.name ?? null;
}

/** The destinations in a table. Every name is text on the terminal. */
export function topText({ total, translated }: TableUse, destinations: readonly NamedDestination[]): string {
  const rows = destinations.map(({ connections, service, ip, port, protocol }) =>
    [String(connections), service ?? '(no Service here)', withPort(ip, port), protocol].map(plainText),
  );
  const head = ['CONNECTIONS', 'SERVICE', 'MADE TO', ''];
  const lines = [
    `${countText(total, 'connection')} tracked, of which ${translated} were sent on to an endpoint`,
    ...(rows.length > 0 ? ['', ...tableLines([head, ...rows], [0])] : []),
  ];
  return lines.map((line) => `${line}\n`).join('');
}
