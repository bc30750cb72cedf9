import { type Cidr, cidrCovers, formatCidr } from '../../core/index.ts';
import type { Link, Route } from '../../netlink/route/index.ts';
import { RTN_BLACKHOLE, RTN_PROHIBIT, RTN_UNREACHABLE, RTPROT_KERNEL } from '../../netlink/uapi/index.ts';
import { isOurDevice, ROUTE_TYPE_WORDS, RTPROT_NODEPLANE } from '../../routes/index.ts';
import type { Check } from '../check.ts';
import { podRanges } from '../facts/node-object.ts';
import { firstFew, ok, skipped, warning } from '../finding.ts';

/** Routes that lead nowhere. Calico has a blackhole for each block of its own. */
const NOWHERE: ReadonlySet<number> = new Set([RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT]);
const MOST_REMOVED = 10;
/** Links between nodes, of whatever network. */
const TUNNEL_KINDS: ReadonlySet<string> = new Set(['vxlan', 'geneve', 'ipip', 'ip6tnl', 'gre', 'wireguard', 'tun']);
/** Links to pods: what leads there is the present network's, and is taken over with it. */
const POD_KINDS: ReadonlySet<string> = new Set(['veth', 'bridge']);

/** Routes that another network left, and that are more specific than ours or the same. */
export const routes: Check = {
  name: 'links.routes',
  async look(world) {
    const { config, node } = world;
    if (!config.cni && !config.routes) return skipped('routes of others to pods: neither --cni nor --routes');
    const { own, all } = await podRanges(world);
    const links = new Map(node.links().map((link) => [link.index, link]));
    const isInTheWay = (route: Route): boolean => {
      const link = links.get(route.outInterface);
      const kind = link?.kind ?? '';
      if (route.protocol === RTPROT_NODEPLANE || !isWithin(route, all)) return false;
      // Of IPv6 the kernel makes a route for each address, that of our tunnel's end too.
      if (route.protocol === RTPROT_KERNEL && link && isOurDevice(link)) return false;
      const leadsNowhere = NOWHERE.has(route.type);
      if (isWithin(route, own)) return config.cni !== undefined && (leadsNowhere || !POD_KINDS.has(kind));
      return config.routes !== undefined && (leadsNowhere || TUNNEL_KINDS.has(kind) || isPartOfRange(route, own));
    };
    const found = node.routes().filter(isInTheWay);
    if (found.length === 0) return ok('no route of others leads into the ranges of pods');
    const words = found.map((route) => textOf(route, links.get(route.outInterface)));
    return warning(
      `routes of others lead into the ranges of pods: ${firstFew(words)}`,
      `when their network is gone: ${found.slice(0, MOST_REMOVED).map(removal).join('; ')}; look again then`,
    );
  },
};

function isWithin({ destination }: Route, ranges: readonly Cidr[]): boolean {
  return ranges.some((range) => cidrCovers(range, destination));
}

/** Whether it is for less than the range that each node has: of our routes to another node it would take packets away. */
function isPartOfRange({ destination, family }: Route, own: readonly Cidr[]): boolean {
  const ofNode = own.find(({ address }) => address.family === family);
  return ofNode !== undefined && destination.prefixLength > ofNode.prefixLength;
}

function textOf(route: Route, link: Pick<Link, 'name'> | undefined): string {
  return `${destinationOf(route)}${link ? ` by ${link.name}` : ''}`;
}

function destinationOf({ type, destination }: Route): string {
  return `${NOWHERE.has(type) ? `${ROUTE_TYPE_WORDS[type]} ` : ''}${formatCidr(destination)}`;
}

function removal(route: Route): string {
  return `ip ${route.family === 'IPv6' ? '-6 ' : ''}route del ${destinationOf(route)}`;
}
