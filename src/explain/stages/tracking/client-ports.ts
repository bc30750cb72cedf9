import { IP_PROTOCOLS, ipEquals } from '../../../core/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Asked } from '../asked.ts';
import type { Report } from '../report.ts';

/** Looks whether the client's kernel has a source port to give for one more connection to the destination. */
export function lookAtClientPorts({ client, target }: Asked, node: NodeView, report: Report): void {
  if (client.kind === 'outside') return;
  const { ip, port, protocol } = target;
  const { range, count } = node.localPorts(client.kind === 'pod' ? client.pod.netns : undefined);
  const setting = `net.ipv4.ip_local_port_range (${range})`;
  if (count(1) === 0) {
    const text = `all ports of ${setting} are reserved, and who asks for none gets none`;
    report.fail('source', { code: 'client-ports', text });
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
