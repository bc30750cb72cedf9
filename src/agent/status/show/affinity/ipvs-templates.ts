import { formatIp, formatIpPort, type IpAddress, ipFromBytes, tryParseIp } from '../../../../core/index.ts';
import type { PortReport } from '../../status.ts';
import type { AffinityClient } from './client.ts';

/**
 * The templates of persistence of a Service port in /proc/net/ip_vs_conn: entries without a client's port. Those of virtual
 * servers by firewall mark (from outside under policy Local) name no address and are passed over.
 *
 * `Pro FromIP FPrt ToIP TPrt DestIP DPrt State Expires`, numbers hexadecimal but for the last (net/netfilter/ipvs/ip_vs_conn.c).
 */
export function parseTemplates(
  text: string,
  port: Pick<PortReport, 'protocol' | 'clusterIp' | 'port' | 'nodePort' | 'externalIps' | 'loadBalancerVips'>,
): AffinityClient[] {
  const addresses = new Set([port.clusterIp, ...port.externalIps, ...port.loadBalancerVips]);
  return text.split('\n').flatMap((line) => {
    const [protocol, from = '', fromPort, to = '', toPort = '', dest = '', destPort = '', , expires] = line
      .trim()
      .split(/\s+/);
    if (protocol !== port.protocol || fromPort !== '0000') return [];
    const [client, vip, endpoint] = [from, to, dest].map(parseHexIp);
    if (!client || !vip || !endpoint) return [];
    const number = Number.parseInt(toPort, 16);
    const isOurs = (number === port.port && addresses.has(formatIp(vip))) || (number !== 0 && number === port.nodePort);
    if (!isOurs) return [];
    const where = formatIpPort(endpoint, Number.parseInt(destPort, 16));
    return { client: formatIp(client), endpoint: where, remainingSeconds: Number(expires) };
  });
}

/** `0A600001`, or IPv6 with all its colons. */
function parseHexIp(text: string): IpAddress | undefined {
  if (/^[0-9A-Fa-f]{8}$/.test(text)) return ipFromBytes(Buffer.from(text, 'hex'));
  return tryParseIp(text);
}
