import {
  type Cidr,
  cidrContains,
  cidrEquals,
  formatCidr,
  formatIp,
  type IpFamily,
  ipFromValue,
  isMapping,
  isWithin,
  parseJson,
  spanOfCidr,
} from '../../../core/index.ts';
import type { OwnRanges } from '../../pools/pod-ranges.ts';

/** What the agent knows of its node and a network's configuration need not say. */
export interface NodeNetwork {
  /** Of its pods. */
  readonly ranges: OwnRanges;
  /** Directory of address reservations. */
  readonly dataDir: string;
  /** The second interface of pods that ask for one. @default none may */
  readonly macvlan?: MacvlanOfNetwork | undefined;
  /** Of pods whose configuration names none. @default the kernel's */
  readonly mtu?: MtuOfNetwork | undefined;
}

/** Key `mtu` of the configuration of one network: others need not lead to other nodes. */
export interface MtuOfNetwork {
  readonly network: string;
  /** Undefined while it is not known. */
  readonly mtu: number | undefined;
}

/** Key `macvlan` of the configuration of one network. */
export interface MacvlanOfNetwork {
  /** The network's name: pods may have attachments to others, and get the interface once. */
  readonly network: string;
  readonly key: object;
}

/** A network configuration as the plugin shall see it. */
export interface CompletedConfig {
  /** Its name, checked by nobody so far; '' when it has none. */
  readonly network: string;
  readonly config: string;
  /** Whether its addresses come from the node's ranges, and there are none for new pods. */
  readonly lacksRanges: boolean;
}

/** Of a node whose ranges are not known. */
export const NO_RANGES: OwnRanges = { sets: [], lacking: '', held: [] };

/** The IPAM type whose ranges come from the agent if the configuration has none. */
const IPAM_TYPE = 'nodeplane';

type Json = Readonly<Record<string, unknown>>;

/**
 * Adds the node's ranges, the directory of reservations and the agent's settings to a configuration that leaves them
 * open, so that the file on the host is the same on all nodes and survives a change of the ranges. What has no name
 * stays as it is: the plugin has the words for it.
 */
export function completeConfig(text: string, { ranges, dataDir, macvlan, mtu }: NodeNetwork): CompletedConfig {
  const given = parseObject(text);
  const network = typeof given?.name === 'string' ? given.name : '';
  if (!given || network === '') return { network, config: text, lacksRanges: false };
  const raw = {
    ...(mtu?.network === network && { mtu: mtu.mtu }),
    ...(macvlan?.network === network && { macvlan: macvlan.key }),
    ...given,
  };
  const { ipam } = given;
  if (!isMapping(ipam) || ipam.type !== IPAM_TYPE) {
    // Where to note attachments whose addresses are not ours to reserve.
    return { network, config: JSON.stringify({ dataDir, ...raw }), lacksRanges: false };
  }
  const needsRanges = ipam.ranges === undefined && ipam.subnet === undefined;
  const completed = {
    dataDir,
    ...ipam,
    ...(needsRanges && rangeKeys(ranges, ipam.exclude)),
  };
  return {
    network,
    config: JSON.stringify({ ...raw, ipam: completed }),
    lacksRanges: needsRanges && ranges.sets.length === 0,
  };
}

/**
 * The keys of the `ipam` object for the node's ranges. Those of which new pods get no address are named too, and excluded: the
 * bridge has their gateways, which would be in the way otherwise. Of one with a range of new pods within it, as a node has that was
 * registered again with a longer mask, one address is named besides. No ADD is made without sets; all else is
 * about pods that are there.
 */
function rangeKeys({ sets, held }: OwnRanges, excluded: unknown): object {
  const subnetsOf = (set: readonly Cidr[]) => set.map(subnetOf);
  if (sets.length === 0) return { ranges: held.map((range) => subnetsOf([range])) };
  const open = sets.flat();
  const closed = held.filter((range) => !open.some((other) => cidrEquals(other, range)));
  if (closed.length === 0) return { ranges: sets.map(subnetsOf) };
  const named = new Set<IpFamily>();
  const ranges = sets.map((set) => {
    const family = set[0]!.address.family;
    const ofFamily = named.has(family) ? [] : closed.filter(({ address }) => address.family === family);
    named.add(family);
    return [...subnetsOf(set), ...ofFamily.flatMap((range) => besides(range, open))];
  });
  const unused = closed.flatMap((range) => besides(range, open)).map(({ subnet, rangeStart }) => rangeStart ?? subnet);
  return { ranges, exclude: [...(Array.isArray(excluded) ? excluded : []), ...unused] };
}

/** A range of a configuration. */
interface RangeKeys {
  readonly subnet: string;
  readonly rangeStart?: string;
  readonly rangeEnd?: string;
}

/** A closed range without what lies in open ones: whole, one address where there are some within it, nothing where they are all of it. */
function besides(range: Cidr, open: readonly Cidr[]): RangeKeys[] {
  const { family } = range.address;
  const span = spanOfCidr(range);
  const within = open.filter(({ address }) => cidrContains(range, address)).map(spanOfCidr);
  if (within.length === 0) return [subnetOf(range)];
  const free = [span.first + 1n, ...within.map(({ last }) => last + 1n)].find(
    (value) => isWithin(span, value) && !within.some((other) => isWithin(other, value)),
  );
  if (free === undefined) return [];
  const address = formatIp(ipFromValue(family, free));
  return [{ ...subnetOf(range), rangeStart: address, rangeEnd: address }];
}

function subnetOf(range: Cidr): RangeKeys {
  return { subnet: formatCidr(range) };
}

function parseObject(text: string): Json | undefined {
  try {
    const value: unknown = parseJson(text);
    return isMapping(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
