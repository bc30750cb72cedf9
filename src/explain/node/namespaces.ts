import { readFileSync } from 'node:fs';
import { attempt, formatIp, type IpAddress, type IpFamily } from '../../core/index.ts';
import { type Netlink, withNetlink } from '../../netlink/index.ts';
import { getNetnsId, type InterfaceAddress, type Link, listAddresses, listLinks } from '../../netlink/route/index.ts';
import { IFA_F_DADFAILED, NETLINK_ROUTE, RT_SCOPE_UNIVERSE } from '../../netlink/uapi/index.ts';
import {
  inNetns,
  type LegacyFamily,
  type LegacyTable,
  legacyTables,
  type NetnsHandle,
  openNetns,
  otherNetns,
  readLegacyTable,
} from '../../sys/index.ts';

/** A network namespace of this machine other than ours: a pod's, most often. */
export interface OtherNamespace {
  readonly path: string;
  /** The number it has here, where a link leads to it. */
  readonly id: number | undefined;
  /** The MAC addresses of all its links. */
  readonly macs: readonly Uint8Array[];
  /** Its addresses others can reach, and the link each is on. */
  readonly addresses: readonly {
    readonly ip: string;
    readonly address: IpAddress;
    readonly prefixLength: number;
    readonly link: Link;
  }[];
}

/**
 * The namespaces that links of ours lead to, as far as they can be seen from here. What vanishes meanwhile is left out.
 * Needs CAP_SYS_ADMIN.
 */
export function otherNamespaces(netlink: Netlink): readonly OtherNamespace[] {
  return otherNetns().flatMap((path) => attempt(() => look(path, netlink)) ?? []);
}

function look(path: string, netlink: Netlink): OtherNamespace | undefined {
  const handle = openNetns(path);
  try {
    const id = getNetnsId(netlink, handle.fd);
    // No pod of ours: another machine's worth of namespaces may be here.
    return id === undefined ? undefined : { path, id, ...contentsOf(handle) };
  } finally {
    handle.close();
  }
}

function contentsOf(handle: NetnsHandle): Pick<OtherNamespace, 'addresses' | 'macs'> {
  return inNetns(handle, () =>
    withNetlink(NETLINK_ROUTE, (socket) => {
      const links = new Map(listLinks(socket).map((link) => [link.index, link]));
      const addresses = listAddresses(socket).flatMap((one) => {
        const { address, prefixLength, scope, index } = one;
        const link = links.get(index);
        return link && isInUse(one) && scope === RT_SCOPE_UNIVERSE
          ? [{ ip: formatIp(address), address, prefixLength, link }]
          : [];
      });
      return { addresses, macs: [...links.values()].map(({ address }) => address) };
    }),
  );
}

/** Whether an address is taken and given as one's own: of IPv6 not where somebody else of the link had it already (dadfailed). */
export function isInUse({ flags }: InterfaceAddress): boolean {
  return (flags & IFA_F_DADFAILED) === 0;
}

/** The tables of legacy iptables, or arptables, in a namespace that do anything; none where it cannot be told. */
export function legacyTablesIn(path: string, family: LegacyFamily): readonly string[] {
  const used = () => (legacyTables(family) ?? []).filter((name) => hasRules(readLegacyTable(family, name)));
  return attempt(() => inNetns(path, used)) ?? [];
}

/** NF_ACCEPT as a verdict of the standard target: -NF_ACCEPT - 1. */
const ACCEPT = -2;

/** Tables stay when their last rule is gone. */
function hasRules(table: LegacyTable): boolean {
  return table.builtIn.some(
    (chain) =>
      chain && (chain.first !== chain.policy || table.entry(chain.policy)?.target.info.readInt32LE(0) !== ACCEPT),
  );
}

/** ETH_P_ALL and ETH_P_ARP of <linux/if_ether.h>, as /proc/net/packet has them. */
const HEARS_ARP: ReadonlySet<string> = new Set(['0003', '0806']);

/** Whether a program here has a socket by which it could answer who-has (ARP, neighbour discovery), as announcers of addresses do. */
export function hasNeighbourSockets(family: IpFamily): boolean {
  const lines = (file: string) =>
    (attempt(() => readFileSync(`/proc/thread-self/net/${file}`, 'utf8')) ?? '').trim().split('\n').slice(1);
  if (lines('packet').some((line) => HEARS_ARP.has(line.trim().split(/\s+/)[3] ?? ''))) return true;
  return family === 'IPv6' && lines('raw6').length > 0;
}

/** Runs `fn` in a namespace; undefined: in that of the calling thread. */
export function within<T>(netns: string | undefined, fn: () => T extends Promise<unknown> ? never : T): T {
  return netns === undefined ? fn() : inNetns(netns, fn);
}
