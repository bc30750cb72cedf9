import { formatIp, type IpFamily } from '../../../src/core/index.ts';
import { type Flow, listFlows } from '../../../src/netlink/conntrack/index.ts';
import { Netlink } from '../../../src/netlink/index.ts';
import { NETLINK_NETFILTER } from '../../../src/netlink/uapi/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import type { TestNamespace } from '../namespace.ts';

/** A netfilter conversation inside a namespace. */
export function openNetfilter(namespace: TestNamespace): Netlink {
  return inNetns(namespace.path, () => Netlink.open(NETLINK_NETFILTER));
}

/** The UDP flows of a namespace by `client port > destination:port < who answers:port`, with the ID of each. */
export function udpFlows(netlink: Netlink, family: IpFamily): ReadonlyMap<string, number> {
  return new Map(listFlows(netlink, { family, protocol: 17 }).map((flow) => [flowText(flow), flow.id]));
}

export function flowText({ original, reply }: Flow): string {
  const to = `${formatIp(original.destination)}:${original.destinationPort}`;
  return `${original.sourcePort} > ${to} < ${formatIp(reply.source)}:${reply.sourcePort}`;
}
