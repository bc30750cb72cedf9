import { existsSync } from 'node:fs';
import { IP_FAMILIES } from '../../../core/index.ts';
import type { Netlink } from '../../../netlink/index.ts';
import { getLink, type Link, listRoutes, macvlanModeOf, type Route } from '../../../netlink/route/index.ts';
import { IFF_LOOPBACK, RT_TABLE_MAIN, RTN_UNICAST } from '../../../netlink/uapi/index.ts';
import { DEFAULT_MASTER, listed, type MacvlanSettings, refused } from '../../config/macvlan-config.ts';

/** Kinds of links that take all frames of their ports, so that nobody else can. */
const TAKING_KINDS = ['bridge', 'bond', 'team', 'openvswitch'];
const MAC_LENGTH = 6;

/**
 * The node's link below a pod's second interface.
 *
 * @throws CniError 110 when it is not among the allowed ones, is not there, or can carry no macvlan
 */
export function findMaster(
  host: Netlink,
  { request, master, allowedMasters }: Pick<MacvlanSettings, 'request' | 'master' | 'allowedMasters'>,
): Link {
  const isAllowed = allowedMasters.includes(master);
  const index = master === DEFAULT_MASTER || !isAllowed ? defaultRouteLink(host) : undefined;
  if (master === DEFAULT_MASTER && index === undefined) {
    throw refused(request, 'the node has no default route through a single link; name the link in "masters"');
  }
  const link = getLink(host, master === DEFAULT_MASTER ? { index: index! } : { name: master });
  if (!isAllowed && (link === undefined || link.index !== index)) {
    throw refused(request, `only these links may be used: ${listed(allowedMasters)}`);
  }
  if (!link) throw refused(request, `the node has no link "${master}"`);
  const objection = objectionTo(host, link);
  if (objection) throw refused(request, `"${link.name}" can carry no macvlan, ${objection}`);
  return link;
}

/** Index of the link of the best default route, IPv4 before IPv6; undefined when there is none, or it has several links. */
function defaultRouteLink(host: Netlink): number | undefined {
  for (const family of IP_FAMILIES) {
    const best = bestDefault(listRoutes(host, { family, table: RT_TABLE_MAIN }));
    if (best) return best.outInterface || undefined;
  }
  return undefined;
}

/** The default route of the lowest metric; of several the first. Pure. */
function bestDefault(routes: readonly Route[]): Route | undefined {
  const defaults = routes.filter(({ destination, type }) => destination.prefixLength === 0 && type === RTN_UNICAST);
  return defaults.sort((a, b) => a.priority - b.priority)[0];
}

/** Why the kernel would refuse, or frames would not pass; the end of a sentence. */
function objectionTo(host: Netlink, { index, name, flags, address, kind, master }: Link): string | undefined {
  if ((flags & IFF_LOOPBACK) !== 0) return 'it is the loopback';
  if (address.length !== MAC_LENGTH) return 'it is no Ethernet';
  if (kind === 'macvlan' && macvlanModeOf(host, index) === 'passthru') return 'it is a macvlan in mode passthru';
  const taker = master === 0 ? undefined : getLink(host, { index: master });
  if (taker && TAKING_KINDS.includes(taker.kind)) return `its frames belong to "${taker.name}"; use that link`;
  if (existsSync(`/sys/class/net/${name}/phy80211`)) {
    return 'it is wireless, where an access point takes frames of one MAC alone';
  }
  return undefined;
}
