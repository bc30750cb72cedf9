import {
  type Cidr,
  cidrContains,
  formatCidr,
  formatIp,
  type IpFamily,
  ipFromValue,
  isMapping,
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
 * Adds the node's ranges, the directory of reservations and the agent's settings to a configuration that leaves them open, so that the file
 * on the host is the same on all nodes and survives a change of the ranges. What has no name stays as it is: the plugin has
 * the words for it.
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
 * bridge has their gateways, which would be in the way otherwise. Of one that has a range of new pods within it, as a node has that was
 * registered again with a longer mask, the gateway alone is named, which no pod gets. No ADD is made without sets; all else is
 * about pods that are there.
 */
function rangeKeys({ sets, held }: OwnRanges, excluded: unknown): object {
  const subnetsOf = (set: readonly Cidr[]) => set.map(subnetOf);
  if (sets.length === 0) return { ranges: held.map((range) => subnetsOf([range])) };
  const open = new Set(sets.flat().map(formatCidr));
  const closed = held.filter((range) => !open.has(formatCidr(range)));
  if (closed.length === 0) return { ranges: sets.map(subnetsOf) };
  const isAround = (range: Cidr) => sets.flat().some(({ address }) => cidrContains(range, address));
  const named = new Set<IpFamily>();
  const ranges = sets.map((set) => {
    const family = set[0]!.address.family;
    const ofFamily = named.has(family) ? [] : closed.filter(({ address }) => address.family === family);
    named.add(family);
    return [...subnetsOf(set), ...ofFamily.map((range) => (isAround(range) ? gatewayOf(range) : subnetOf(range)))];
  });
  const unused = closed.filter((range) => !isAround(range)).map(formatCidr);
  return { ranges, exclude: [...(Array.isArray(excluded) ? excluded : []), ...unused] };
}

function gatewayOf(range: Cidr): object {
  const { family, first } = spanOfCidr(range);
  const gateway = formatIp(ipFromValue(family, first + 1n));
  return { ...subnetOf(range), rangeStart: gateway, rangeEnd: gateway };
}

function subnetOf(range: Cidr): object {
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
