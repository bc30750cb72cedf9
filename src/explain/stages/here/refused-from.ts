import { formatIp, type IpAddress, isLoopback, settingName, shellWord } from '../../../core/index.ts';
import type { Link } from '../../../netlink/route/index.ts';
import type { CauseCode } from '../../answer/index.ts';
import type { NodeView } from '../../node/index.ts';
import { showingNoRoute, showingRules } from '../commands.ts';
import type { Finding } from '../report.ts';

/** Packets that are refused by whom they come from and by which link: the way as such is there. */
interface RefusedFrom {
  readonly from: IpAddress;
  readonly to: IpAddress;
  /** Undefined: they are this node's own. */
  readonly inInterface: number | undefined;
  /** @default none */
  readonly mark?: number | undefined;
  /** Where a policy rule refuses them. */
  readonly code: CauseCode;
}

/** Newer kernels tell no difference between what rp_filter refuses and what a policy rule does (inet_rtm_getroute: EINVAL). */
export function refusedFrom(
  { from, to, inInterface, mark, code }: RefusedFrom,
  errno: string,
  node: NodeView,
): Finding {
  const link = node.link(inInterface ?? 0)?.name;
  const by = link === undefined ? '' : ` on ${link}`;
  const text = `packets from ${formatIp(from)} to ${formatIp(to)} are refused${by} (${errno})`;
  const filtered = link === undefined ? false : byRpFilter(from, mark, { name: link, index: inInterface! }, node);
  if (filtered === 'another way back') {
    const remedy = [`sysctl -w ${shellWord(settingName(`net/ipv4/conf/${link}/rp_filter`))}=2`];
    return { code: 'rp-filter', text: `${text}: by rp_filter, as the way back is another`, remedy };
  }
  if (filtered === 'no way back') {
    const remedy = [`${showingNoRoute(from)[0]}   # nor could answers go there: a route is missing`];
    return { code: 'rp-filter', text: `${text}: by rp_filter, as there is no way back`, remedy };
  }
  const remedy = [showingRules(to.family), showingNoRoute(to)[0]];
  // __mkroute_output; where route_localnet is set it would not have been refused.
  if (link === undefined && from.family === 'IPv4' && isLoopback(from)) {
    return { code, text: `${text}: a loopback address is no source of what leaves the node`, remedy: remedy.slice(1) };
  }
  return { code, text: `${text} by a policy rule for such packets`, remedy };
}

/**
 * Why rp_filter refuses a source, if it does: strict, where the way back leaves by another link; loose too, where there
 * is none (__fib_validate_source).
 */
function byRpFilter(
  from: IpAddress,
  mark: number | undefined,
  { name, index }: Pick<Link, 'name' | 'index'>,
  node: NodeView,
): 'another way back' | 'no way back' | false {
  if (from.family === 'IPv6') return false;
  const setting = (what: string) =>
    Math.max(...['all', name].map((conf) => Number(node.sysctl(`net/ipv4/conf/${conf}/${what}`) ?? 0)));
  const filter = setting('rp_filter');
  if (filter === 0) return false;
  const back = node.route({ destination: from, mark: setting('src_valid_mark') === 0 ? undefined : mark });
  if (back.kind === 'refused') return 'no way back';
  return filter === 1 && back.route.outInterface !== index && 'another way back';
}
