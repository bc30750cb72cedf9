import { formatIp, formatIpPort, IP_PROTOCOLS, type IpProtocol } from '../../../../core/index.ts';
import type { IpvsConnection } from '../../../../netlink/ipvs/index.ts';
import type { PortReport } from '../../status.ts';
import type { AffinityClient } from './client.ts';

/**
 * The clients of a Service port among the templates of persistence. Those of virtual servers by firewall mark (from outside
 * under policy Local) name no address and are passed over.
 */
export function clientsAmong(
  templates: readonly IpvsConnection[],
  port: Pick<
    PortReport,
    'family' | 'protocol' | 'clusterIp' | 'port' | 'nodePort' | 'externalIps' | 'loadBalancerVips'
  >,
): AffinityClient[] {
  const addresses = new Set([port.clusterIp, ...port.externalIps, ...port.loadBalancerVips]);
  const number = IP_PROTOCOLS[port.protocol as IpProtocol];
  return templates.flatMap(({ protocol, client, virtual, virtualPort, server, serverPort, expiresSeconds }) => {
    const isOurs =
      (virtualPort === port.port && addresses.has(formatIp(virtual))) ||
      (virtualPort !== 0 && virtualPort === port.nodePort);
    if (protocol !== number || client.family !== port.family || !isOurs) return [];
    const endpoint = formatIpPort(server, serverPort);
    return { client: formatIp(client), endpoint, remainingSeconds: expiresSeconds };
  });
}
