import { IP_PROTOCOLS, ipEquals } from '../../../core/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Asked } from '../asked.ts';
import { runIn } from '../commands.ts';
import type { Report } from '../report.ts';

/** Bytes that a socket has at least to receive with, whatever a process asks for (SOCK_MIN_RCVBUF, include/net/sock.h, about). */
const LEAST_TO_RECEIVE = 2304;
/** Of the kernel (inet_init_net, net/ipv4/af_inet.c). */
const DEFAULT_RANGE = '32768 60999';

/** Looks whether the client's kernel has a source port to give for one more connection to the destination, and room for answers. */
export function lookAtClientPorts({ client, target }: Asked, node: NodeView, report: Report): void {
  if (client.kind === 'outside') return;
  const { ip, port, protocol } = target;
  const netns = client.kind === 'pod' ? client.pod.netns : undefined;
  const receiving = protocol === 'TCP' ? node.sysctl('net/ipv4/tcp_rmem', netns) : undefined;
  if (Number(receiving?.split(/\s+/)[1] ?? LEAST_TO_RECEIVE) < LEAST_TO_RECEIVE) {
    const text = `net.ipv4.tcp_rmem of the client (${receiving}) has no room for answers`;
    report.cannotTell('source', `${text}, unless a process asks for more`);
  }
  const { range, count } = node.localPorts(netns);
  const setting = `net.ipv4.ip_local_port_range (${range})`;
  if (count(1) === 0) {
    const text = `all ports of ${setting} are reserved, and who asks for none gets none`;
    const widen = runIn(netns, `sysctl -w net.ipv4.ip_local_port_range='${DEFAULT_RANGE}'`);
    const free = runIn(netns, 'sysctl -w net.ipv4.ip_local_reserved_ports=');
    const remedy = range === DEFAULT_RANGE ? [free] : [widen, free];
    report.fail('source', { code: 'client-ports', text, remedy });
    return;
  }
  // Of each flow the table has an entry, which are not listed where all of them would leave a port.
  const { count: tracked } = node.tracking.room;
  if (count(tracked + 1) > tracked) return;
  const flows = node.tracking.flowsTo({ protocol: IP_PROTOCOLS[protocol], port, ip });
  const own = flows.filter(({ flow }) => ipEquals(flow.original.source, client.ip));
  if (count(own.length + 1) > own.length) return;
  const text = `the client has ${own.length} flows to the destination, and ${setting} has no more ports`;
  report.cannotTell('source', `${text}: whether one is left was not looked at`);
}
