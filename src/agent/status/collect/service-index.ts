import { compareText, type IpAddress, type IpFamily, ipEquals, type Steps, tryParseIp } from '../../../core/index.ts';
import type { ServicePortPlan } from '../../../proxy/index.ts';
import { STATUS_LIMITS } from '../status.ts';
import type { FamilyRecord } from './recorder.ts';

/** The ports planned in one family, and what is known of them. */
export interface PlannedFamily {
  readonly family: IpFamily;
  readonly ports: ReadonlyMap<string, ServicePortPlan>;
  /** Undefined: nothing happened yet. */
  readonly record: FamilyRecord | undefined;
}

/** How many Services there are, and how they fare on this node. A Service is counted once, as its worst port in any family. */
export interface ServiceCounts {
  readonly total: number;
  /** Parts of it are not served, or the kernel refuses it. */
  readonly troubled: number;
  /** A port has no endpoint anywhere: connections are refused. */
  readonly refused: number;
  /** A port has endpoints, but none on this node where policy Local asks for one: packets are dropped. */
  readonly dropped: number;
}

export interface ServiceIndex {
  readonly counts: ServiceCounts;
  /** Those that somebody should look at first; sorted. At most as many as problems are told. */
  readonly troubled: readonly string[];
  /** How many fit the search. */
  readonly matched: number;
  readonly page: number;
  readonly pages: number;
  /** The names on the page. */
  readonly names: readonly string[];
}

/** What somebody wants to see. */
export interface ServiceView {
  /** A part of a name, an address or a port, or several of them with commas between; a whole name means this Service alone. Empty: all. */
  readonly query: string;
  /** From 1. */
  readonly page: number;
}

/** From worst to best. */
const RANKS = { troubled: 0, refused: 1, dropped: 2, served: 3 } as const;
type Rank = (typeof RANKS)[keyof typeof RANKS];

interface Entry {
  rank: Rank;
  matches: boolean;
}

/** Counts all Services and picks those of a page, in one walk over the plans. */
export function* indexServices(families: readonly PlannedFamily[], { query, page }: ServiceView): Steps<ServiceIndex> {
  const entries = new Map<string, Entry>();
  const matches = matcher(query);
  for (const { ports, record } of families) {
    // Plans change while this is interrupted, and a port that is planned again would come again.
    for (const port of [...ports.values()]) {
      const { serviceName } = port;
      const rank = record?.leftOut.has(port.key) ? RANKS.troubled : rankOf(port);
      const entry = entries.get(serviceName);
      if (!entry) entries.set(serviceName, { rank, matches: matches(port) });
      else {
        if (rank < entry.rank) entry.rank = rank;
        entry.matches ||= matches(port);
      }
      yield;
    }
    for (const [name] of record?.problems ?? []) {
      const entry = entries.get(name);
      if (entry) entry.rank = RANKS.troubled;
      else entries.set(name, { rank: RANKS.troubled, matches: name.includes(query) });
      yield;
    }
  }
  const counts = [0, 0, 0, 0];
  const found: string[][] = [[], [], [], []];
  const troubled: string[] = [];
  for (const [name, { rank, matches: fits }] of entries) {
    counts[rank]!++;
    if (fits) found[rank]!.push(name);
    if (rank === RANKS.troubled && troubled.length < STATUS_LIMITS.problems) troubled.push(name);
    yield;
  }
  const names = entries.has(query) ? [query] : [];
  if (names.length === 0) {
    for (const list of found) {
      names.push(...list.sort(compareText));
      yield;
    }
  }
  const pages = Math.max(1, Math.ceil(names.length / STATUS_LIMITS.servicesOnPage));
  const shown = Math.min(Math.max(1, page), pages);
  const from = (shown - 1) * STATUS_LIMITS.servicesOnPage;
  return {
    counts: { total: entries.size, troubled: counts[0]!, refused: counts[1]!, dropped: counts[2]! },
    troubled: troubled.sort(compareText),
    matched: names.length,
    page: shown,
    pages,
    names: names.slice(from, from + STATUS_LIMITS.servicesOnPage),
  };
}

function rankOf({ internalVerdict, externalVerdict }: ServicePortPlan): Rank {
  if (internalVerdict === 'reject') return RANKS.refused;
  return internalVerdict === 'drop' || externalVerdict === 'drop' ? RANKS.dropped : RANKS.served;
}

/** An address is compared as one, a number with ports, and any text with a part of the name. */
function matcher(query: string): (port: ServicePortPlan) => boolean {
  if (query === '') return () => true;
  if (query.includes(',')) {
    const each = query.split(',').filter(Boolean).map(matcher);
    return (port) => each.some((matches) => matches(port));
  }
  const ip = tryParseIp(query);
  if (ip) return (port) => hasAddress(port, ip);
  const number = /^\d{1,5}$/.test(query) ? Number(query) : -1;
  return (port) => port.serviceName.includes(query) || port.port === number || port.nodePort === number;
}

/** Without a list of them: 10,000 Services with ten endpoints each are looked through. */
function hasAddress(port: ServicePortPlan, ip: IpAddress): boolean {
  const isIt = (one: IpAddress) => ipEquals(one, ip);
  const isAt = (endpoint: { readonly ip: IpAddress }) => ipEquals(endpoint.ip, ip);
  const { clusterIp, externalIps, loadBalancerVips, clusterEndpoints, localEndpoints } = port;
  return (
    isIt(clusterIp) ||
    externalIps.some(isIt) ||
    loadBalancerVips.some(isIt) ||
    clusterEndpoints.some(isAt) ||
    localEndpoints.some(isAt)
  );
}
