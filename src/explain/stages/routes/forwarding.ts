import { type IpAddress, settingName } from '../../../core/index.ts';
import { type NodeView, showsToRules } from '../../node/index.ts';
import type { Finding } from '../report.ts';

export function notForwarded(setting: string): Finding {
  const name = settingName(setting);
  const link = /conf\/(.*)\/forwarding$/.exec(setting)?.[1];
  const what = link === undefined || link === 'all' ? 'nothing' : `nothing that comes in by ${link}`;
  return { code: 'forwarding', text: `${name} is 0: this node forwards ${what}`, remedy: [`sysctl -w ${name}=1`] };
}

/** The setting that forbids to forward what comes in by a link; undefined: none does, or it is this node's own. */
export function forwardingOff(
  { family }: IpAddress,
  inInterface: number | undefined,
  node: NodeView,
): string | undefined {
  const link = node.link(inInterface ?? 0)?.name;
  if (link === undefined) return undefined;
  const isOff = (name: string) => node.sysctl(name) === '0';
  if (family === 'IPv6') {
    // Since Linux 6.17 a link may forward IPv6 on its own (ip6_forward, net/ipv6/ip6_output.c).
    const isForced = node.sysctl(`net/ipv6/conf/${link}/force_forwarding`) === '1';
    const ofAll = 'net/ipv6/conf/all/forwarding';
    return !isForced && isOff(ofAll) ? ofAll : undefined;
  }
  // That of the link decides (ip_route_input_slow, net/ipv4/route.c); whoever writes the one of all writes those of all links.
  const own = `net/ipv4/conf/${link}/forwarding`;
  if (!isOff(own)) return undefined;
  return isOff('net/ipv4/ip_forward') ? 'net/ipv4/ip_forward' : own;
}

/** What comes in by a bridge and leaves by it is translated there and, of IPv6, not forwarded (br_netfilter_ipv6.c). */
export function staysInBridge(
  inInterface: number | undefined,
  outInterface: number,
  ip: IpAddress,
  node: NodeView,
): boolean {
  const link = ip.family === 'IPv6' && inInterface === outInterface ? node.link(outInterface) : undefined;
  return link?.kind === 'bridge' && showsToRules(link, ip, node);
}
