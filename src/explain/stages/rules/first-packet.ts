import { protocolWord } from '../../../core/index.ts';
import type { NodeView } from '../../node/index.ts';
import { type FirstPacket, GIVEN_PORTS } from '../../packet/index.ts';
import type { Origin } from '../../walk/index.ts';
import type { Asked } from '../asked.ts';

/**
 * The client's first packet. A pod and this node let their kernel choose the port; of others nobody here knows who
 * changes it on the way.
 */
export function firstOf({ client, target }: Asked, node: NodeView): FirstPacket {
  const netns = client.kind === 'pod' ? client.pod.netns : undefined;
  const range = client.kind === 'outside' ? undefined : node.sysctl('net/ipv4/ip_local_port_range', netns);
  const isGiven = Number.parseInt(range ?? '0', 10) >= GIVEN_PORTS;
  const protocol = protocolWord(target.protocol);
  const ends = { source: client.ip, destination: target.ip, destinationPort: target.port };
  return { protocol, ...ends, ...(isGiven && { sourcePort: 'given' }) };
}

/** By which interface it comes in. */
export function originOf({ client }: Asked): Origin {
  if (client.kind === 'node') return 'this host';
  if (client.kind === 'outside') return client.link;
  const { index, name } = client.pod.seenAs!;
  return { index, name };
}
