import { formatIp, type IpAddress, ipEquals, isLoopback } from '../../../core/index.ts';
import { deleteFlows, type Flow, listFlows } from '../../../netlink/conntrack/index.ts';
import { type Netlink, withNetlink } from '../../../netlink/index.ts';
import { listAddresses } from '../../../netlink/route/index.ts';
import { NETLINK_NETFILTER } from '../../../netlink/uapi/index.ts';
import type { MappedPort } from '../tables/mapped-port.ts';
import { IPPROTO } from '../tables/pod-elements.ts';

// UDP and SCTP alone: a client may send from one port for ever, an SCTP client also when it begins anew. TCP ends by itself.

/**
 * Ends the tracked UDP and SCTP flows to mapped ports that were begun before the mapping. A client that keeps sending from
 * one port would otherwise stay with whoever had the port before, for as long as it sends.
 */
export function endOlderFlows(host: Netlink, ports: readonly MappedPort[]): void {
  const lasting = ports.filter(mayLast);
  if (lasting.length === 0) return;
  const ofNode = new Set(listAddresses(host).map(({ address }) => formatIp(address)));
  const isToNode = (ip: IpAddress) => isLoopback(ip) || ofNode.has(formatIp(ip));
  endFlows(lasting, ({ hostIp }, { original: { destination } }) =>
    hostIp ? ipEquals(hostIp, destination) : isToNode(destination),
  );
}

/** Ends the tracked UDP and SCTP flows that mapped ports led to the pod. */
export function endFlowsToPod(ports: readonly Omit<MappedPort, 'hostIp' | 'containerPort'>[]): void {
  endFlows(ports.filter(mayLast), ({ pod }, { reply }) => ipEquals(reply.source, pod.address));
}

function mayLast({ protocol }: Pick<MappedPort, 'protocol'>): boolean {
  return protocol !== 'tcp';
}

function endFlows<P extends Pick<MappedPort, 'family' | 'protocol' | 'hostPort'>>(
  ports: readonly P[],
  isMeant: (port: P, flow: Flow) => boolean,
): void {
  if (ports.length === 0) return;
  withNetlink(NETLINK_NETFILTER, (conntrack) => {
    for (const port of ports) {
      const destination = { protocol: IPPROTO[port.protocol], port: port.hostPort };
      const flows = listFlows(conntrack, { family: port.family, destination }).filter((flow) => isMeant(port, flow));
      deleteFlows(conntrack, flows);
    }
  });
}
