import {
  type Cidr,
  cidrContains,
  cidrsOverlap,
  formatCidr,
  formatIp,
  type IpAddress,
  parseCidr,
} from '../../../core/index.ts';
import type { JournalEntry } from '../../../ipam/index.ts';
import type { BlockUse } from '../../../pools/index.ts';
import { OTHER_RANGE } from '../service-ranges.ts';
import type { ClusterAddresses } from './read-cluster.ts';

/** Something that is not as it should be with the addresses of this node. */
export interface IpamFinding {
  readonly kind:
    | 'gone'
    | 'unused'
    | 'unreserved'
    | 'reservedTwice'
    | 'usedTwice'
    | 'emptyBlock'
    | 'staleBlock'
    | 'foreignRange'
    | 'serviceRange';
  /** The address or block. */
  readonly what: string;
  readonly message: string;
  /** What to do. */
  readonly remedy: string;
}

/** An address on an interface in a network namespace that is not the node's own. */
export interface AddressInUse {
  readonly address: IpAddress;
  /** The path of the namespace. */
  readonly netns: string;
}

export interface Reserved {
  readonly address: IpAddress;
  readonly network: string;
  /** The file that reserves it. */
  readonly path: string;
  /** Container and interface, as the file says. */
  readonly owner: string;
}

/** What `nodeplane ipam check` looks at. */
export interface IpamFacts {
  readonly nodeName: string;
  /** Undefined: it is not known where addresses are reserved. */
  readonly reserved: readonly Reserved[] | undefined;
  /** Attachments noted and not gone. */
  readonly attached: readonly JournalEntry[];
  /** Attachments noted, but certainly no more. */
  readonly gone: readonly (JournalEntry & { readonly network: string })[];
  /** Undefined: the namespaces of pods cannot be seen from here. */
  readonly inUse: readonly AddressInUse[] | undefined;
  /** Ranges of this node's pods. */
  readonly ranges: readonly Cidr[];
  /** Of Services. @default none is known */
  readonly serviceRanges?: readonly Cidr[];
  /** Ranges of the pools. */
  readonly pools: readonly Cidr[];
  /** Undefined: nodes do not share pools, or they could not be read. */
  readonly cluster: Pick<ClusterAddresses, 'node' | 'blocks'> | undefined;
  /** Blocks come from manifests: nobody takes or gives back any. @default false */
  readonly blocksAreGiven?: boolean;
  /** Undefined: it is not known. */
  readonly use: ((range: Cidr) => BlockUse) | undefined;
}

/** Compares what is reserved, what is in use, and which blocks the node has. Pure. */
export function checkAddresses(facts: IpamFacts): IpamFinding[] {
  return [
    ...gone(facts),
    ...unused(facts),
    ...unreserved(facts),
    ...reservedTwice(facts),
    ...usedTwice(facts),
    ...ownBlocks(facts),
    ...foreignRanges(facts),
    ...serviceRanges(facts),
  ];
}

function gone({ gone }: IpamFacts): IpamFinding[] {
  return gone.flatMap(({ network, owner, addresses }) =>
    addresses.map((address) => ({
      kind: 'gone',
      what: formatIp(address),
      message: `is reserved for container ${owner.containerId} ${owner.ifname} of network "${network}", which is gone`,
      remedy: 'a running agent gives it back within three minutes',
    })),
  );
}

/** Of attachments that are noted it is known whether they are there. */
function unused({ reserved, attached, gone, inUse, ranges }: IpamFacts): IpamFinding[] {
  if (!inUse || !reserved) return [];
  const known = new Set([...attached, ...gone].flatMap(({ addresses }) => addresses.map(formatIp)));
  const used = new Set(inUse.map(({ address }) => formatIp(address)));
  return reserved
    .filter(({ address }) => isWithin(ranges, address) && !known.has(formatIp(address)) && !used.has(formatIp(address)))
    .map(({ address, owner, path }) => ({
      kind: 'unused',
      what: formatIp(address),
      message: `is reserved for ${owner || 'nobody'}, and no interface has it`,
      remedy: `when the runtime does not know the container any more (crictl pods), remove the file "${path}"`,
    }));
}

function unreserved({ reserved, inUse = [], ranges }: IpamFacts): IpamFinding[] {
  if (!reserved) return [];
  const known = new Set(reserved.map(({ address }) => formatIp(address)));
  return inUse
    .filter(({ address }) => isWithin(ranges, address) && !known.has(formatIp(address)))
    .map(({ address, netns }) => ({
      kind: 'unreserved',
      what: formatIp(address),
      message: `is on an interface in "${netns}" and not reserved: another pod can be given it`,
      remedy: 'delete the pod that has it; the new one gets an address of its own',
    }));
}

function reservedTwice({ reserved = [] }: IpamFacts): IpamFinding[] {
  return repeated(reserved).map((all) => ({
    kind: 'reservedTwice',
    what: formatIp(all[0]!.address),
    message: `is reserved ${all.length} times: ${all.map(({ owner, network }) => `for ${owner || 'nobody'} in network "${network}"`).join(', ')}`,
    remedy: `find out who has it, and remove the other files of ${all.map(({ path }) => `"${path}"`).join(', ')}`,
  }));
}

function usedTwice({ inUse = [], ranges }: IpamFacts): IpamFinding[] {
  return repeated(inUse.filter(({ address }) => isWithin(ranges, address))).map((all) => ({
    kind: 'usedTwice',
    what: formatIp(all[0]!.address),
    message: `is on interfaces in ${all.map(({ netns }) => `"${netns}"`).join(' and ')}`,
    remedy: 'delete the pod that it is not reserved for',
  }));
}

function ownBlocks({ nodeName, cluster, blocksAreGiven = false, use }: IpamFacts): IpamFinding[] {
  // What a manifest gives is the node's, whether pods use it or not.
  if (!cluster || blocksAreGiven) return [];
  const own = cluster.blocks.filter(({ spec }) => spec.node === nodeName);
  const uid = cluster.node?.metadata.uid;
  const stale = own.filter(({ spec }) => spec.nodeUID !== undefined && spec.nodeUID !== uid);
  const empty = own.filter(
    (block) => !stale.includes(block) && block.spec.state !== 'pending' && use?.(parseCidr(block.spec.cidr)).used === 0,
  );
  const isIpv6 = ({ spec }: (typeof own)[number]) => spec.cidr.includes(':');
  // The agent keeps one of each family ready.
  const ready = [false, true].flatMap((family) => {
    const ofFamily = own.filter((block) => isIpv6(block) === family);
    const spare = ofFamily.filter((block) => empty.includes(block));
    return spare.slice(0, 1);
  });
  return [
    ...empty
      .filter((block) => !ready.includes(block))
      .map(
        ({ spec }): IpamFinding => ({
          kind: 'emptyBlock',
          what: spec.cidr,
          message: 'is a block of this node that no pod has an address of',
          remedy: 'a running agent gives it back within a few minutes',
        }),
      ),
    ...stale.map(
      ({ spec }): IpamFinding => ({
        kind: 'staleBlock',
        what: spec.cidr,
        message: `is a block of an earlier Node "${nodeName}" (UID ${spec.nodeUID})`,
        remedy:
          'a running agent takes it over when pods have addresses of it, and nodes take it back otherwise after --pool-reclaim-after',
      }),
    ),
  ];
}

/** Addresses of a pool that are reserved here while the block is not this node's. */
function foreignRanges({ reserved = [], pools, ranges, cluster }: IpamFacts): IpamFinding[] {
  if (!cluster) return [];
  return reserved
    .filter(({ address }) => isWithin(pools, address) && !isWithin(ranges, address))
    .map(({ address, owner }) => {
      const block = cluster.blocks.find(({ spec }) => cidrContains(parseCidr(spec.cidr), address));
      const whose = block ? `of block ${block.spec.cidr}, which is that of node "${block.spec.node}"` : 'of no block';
      return {
        kind: 'foreignRange',
        what: formatIp(address),
        message: `is reserved for ${owner || 'nobody'} and ${whose}`,
        remedy: 'delete the pod: the address may be given to another one on another node',
      };
    });
}

/** Who has such an address is not reached, nor is the Service from it: the agent gives none. */
function serviceRanges({ ranges, serviceRanges = [] }: IpamFacts): IpamFinding[] {
  return ranges.flatMap((range) => {
    const other = serviceRanges.find((services) => cidrsOverlap(services, range));
    if (!other) return [];
    return {
      kind: 'serviceRange',
      what: formatCidr(range),
      message: `is a range of this node’s pods and overlaps the Service range ${formatCidr(other)}: no new pod gets an address of it`,
      remedy: OTHER_RANGE,
    };
  });
}

function isWithin(ranges: readonly Cidr[], address: IpAddress): boolean {
  return ranges.some((range) => cidrContains(range, address));
}

/** Those of which several have the same address. */
function repeated<T extends { readonly address: IpAddress }>(all: readonly T[]): T[][] {
  const byAddress = new Map<string, T[]>();
  for (const one of all) {
    const text = formatIp(one.address);
    const same = byAddress.get(text);
    if (same) same.push(one);
    else byAddress.set(text, [one]);
  }
  return [...byAddress.values()].filter((same) => same.length > 1);
}
