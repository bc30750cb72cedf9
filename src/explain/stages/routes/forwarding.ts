import { type IpAddress, settingName, shellWord } from '../../../core/index.ts';
import { type NodeView, showsToRules } from '../../node/index.ts';
import type { Finding } from '../report.ts';

const OF_ALL_IPV6 = 'net/ipv6/conf/all/forwarding';

/**
 * What is wrong where a setting keeps the node from forwarding.
 *
 * @param setting below /proc/sys: `net/ipv4/conf/eth0/forwarding`
 */
export function notForwarded(setting: string, node: NodeView): Finding {
  const name = settingName(setting);
  const link = /conf\/(.*)\/forwarding$/.exec(setting)?.[1];
  const what = link === undefined || link === 'all' ? 'nothing' : `nothing that comes in by ${link}`;
  const before = setting === OF_ALL_IPV6 ? keepingAdvertisements(node) : [];
  const settings = [...before, `${shellWord(name)}=1`].join(' ');
  return { code: 'forwarding', text: `${name} is 0: this node forwards ${what}`, remedy: [`sysctl -w ${settings}`] };
}

/**
 * A node that forwards IPv6 loses the routes that routers have told it, but on links whose accept_ra is 2
 * (Documentation/networking/ip-sysctl.rst).
 */
function keepingAdvertisements(node: NodeView): readonly string[] {
  return node.links.flatMap(({ name, up, master }) => {
    const setting = `net/ipv6/conf/${name}/accept_ra`;
    const takes = up && master === 0 && name !== 'lo' && node.sysctl(setting) === '1';
    return takes ? [`${shellWord(settingName(setting))}=2`] : [];
  });
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
    return !isForced && isOff(OF_ALL_IPV6) ? OF_ALL_IPV6 : undefined;
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
