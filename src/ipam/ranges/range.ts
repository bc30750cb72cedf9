import {
  type Cidr,
  formatCidr,
  formatIp,
  type IpAddress,
  type IpFamily,
  type IpSpan,
  ipEquals,
  ipFromValue,
  ipValue,
  NodeplaneError,
  networkOf,
  parseAddressWithPrefix,
  spanBetween,
  spanContains,
  spanOfCidr,
  spansOverlap,
  tryParseIp,
} from '../../core/index.ts';

/** A range as it is written in host-local's configuration. */
export interface RangeText {
  readonly subnet: string;
  /** @default the address after the network address */
  readonly rangeStart?: string | undefined;
  /** @default the last address; for IPv4 the one before the broadcast address */
  readonly rangeEnd?: string | undefined;
  /** Need not lie in the subnet. @default the address after the network address */
  readonly gateway?: string | undefined;
}

/** Addresses of one subnet that may be handed out, with the gateway that goes with them. */
export interface AddressRange {
  readonly family: IpFamily;
  readonly subnet: Cidr;
  readonly gateway: IpAddress;
  /** Inclusive. May contain the gateway; the allocator skips it. */
  readonly span: IpSpan;
}

/** Ranges of one family among which one address is chosen per interface. */
export type RangeSet = readonly [AddressRange, ...AddressRange[]];

/** The longest prefix that leaves a network address, a gateway and a usable address (host-local's limits). */
const LONGEST_PREFIX = { IPv4: 30, IPv6: 126 } as const;

/**
 * Parses and checks one range by host-local's rules.
 *
 * @param path where it stands in the configuration (`ipam.ranges[0][1]`), for messages
 * @throws ERR_IPAM_CONFIG
 */
export function parseRange(text: RangeText, path: string): AddressRange {
  const subnet = parseSubnet(text.subnet, `${path}.subnet`);
  const { family } = subnet.address;
  const block = spanOfCidr(subnet);
  const firstValue = block.first + 1n;
  const lastValue = block.last - (family === 'IPv4' ? 1n : 0n);

  const parseOne = (key: 'rangeStart' | 'rangeEnd' | 'gateway', fallback: bigint): IpAddress => {
    const value = text[key];
    return value === undefined ? ipFromValue(family, fallback) : parseOfFamily(value, family, `${path}.${key}`);
  };
  const start = parseOne('rangeStart', firstValue);
  const end = parseOne('rangeEnd', lastValue);
  for (const [key, ip] of [
    ['rangeStart', start],
    ['rangeEnd', end],
  ] as const) {
    if (!spanContains(block, ip)) {
      throw invalid(`${path}.${key}`, formatIp(ip), `it lies outside the subnet ${formatCidr(subnet)}`);
    }
  }
  if (ipValue(start) > ipValue(end)) {
    throw invalid(`${path}.rangeStart`, formatIp(start), `it lies behind the end of the range, ${formatIp(end)}`);
  }
  return {
    family,
    subnet,
    gateway: parseOne('gateway', firstValue),
    span: spanBetween(start, end),
  };
}

/**
 * Parses and checks the sets of a network: each set of one family, no two ranges overlapping anywhere.
 *
 * @throws ERR_IPAM_CONFIG
 */
export function parseRangeSets(sets: readonly (readonly RangeText[])[], path: string): RangeSet[] {
  const parsed = sets.map((set, i) => {
    const [first, ...others] = set.map((range, j) => parseRange(range, `${path}[${i}][${j}]`));
    if (!first) throw new NodeplaneError('ERR_IPAM_CONFIG', `Cannot use ${path}[${i}]: the set holds no range`);
    for (const other of others) {
      if (other.family !== first.family) {
        throw invalid(`${path}[${i}]`, formatRangeSet([first, other]), 'a set must be of one address family');
      }
    }
    return [first, ...others] as const;
  });
  refuseOverlaps(parsed.flat(), path);
  return parsed;
}

/** The text host-local prints in its messages: `10.244.1.1-10.244.1.254`, several ranges joined by a comma. */
export function formatRangeSet(set: RangeSet): string {
  return set.map((range) => formatRange(range)).join(',');
}

function formatRange({ family, span }: AddressRange): string {
  const text = (value: bigint) => formatIp(ipFromValue(family, value));
  return `${text(span.first)}-${text(span.last)}`;
}

function refuseOverlaps(ranges: readonly AddressRange[], path: string): void {
  ranges.forEach((a, i) => {
    for (const b of ranges.slice(i + 1)) {
      if (spansOverlap(a.span, b.span)) {
        throw invalid(path, formatRange(a), `it overlaps with ${formatRange(b)}`);
      }
    }
  });
}

function parseSubnet(text: string, path: string): Cidr {
  let subnet: Cidr;
  try {
    subnet = parseAddressWithPrefix(text);
  } catch (cause) {
    throw new NodeplaneError('ERR_IPAM_CONFIG', `Cannot use ${path}: "${text}" is no subnet, such as "10.244.1.0/24"`, {
      facts: { path, value: text },
      cause,
    });
  }
  const network = networkOf(subnet.address, subnet.prefixLength);
  if (!ipEquals(network, subnet.address)) {
    throw invalid(path, text, `it has host bits set, the network is "${formatCidr({ ...subnet, address: network })}"`);
  }
  const longest = LONGEST_PREFIX[subnet.address.family];
  if (subnet.prefixLength > longest) {
    throw invalid(path, text, `the subnet is too small, the longest usable prefix is /${longest}`);
  }
  return subnet;
}

function parseOfFamily(text: string, family: IpFamily, path: string): IpAddress {
  const ip = tryParseIp(text);
  if (!ip) throw invalid(path, text, 'it is no IP address');
  if (ip.family !== family) throw invalid(path, text, `it is no ${family} address as its subnet is`);
  return ip;
}

function invalid(path: string, value: string, reason: string): NodeplaneError {
  return new NodeplaneError('ERR_IPAM_CONFIG', `Cannot use ${path} "${value}": ${reason}`, { facts: { path, value } });
}
