import {
  addressBits,
  type Cidr,
  formatCidr,
  formatIp,
  type IpFamily,
  type IpSpan,
  ipFromValue,
  NodeplaneError,
  parseCidr,
  spanOfCidr,
  spansOverlap,
  specialRange,
} from '../core/index.ts';

/** A pool as it is configured. */
export interface PoolConfig {
  /** `10.244.0.0/16` */
  readonly cidr: string;
  /** The prefix length of its blocks. @default 26 (IPv4: 64 addresses), 122 (IPv6: as many) */
  readonly blockSize?: number;
}

/** A range of the cluster, cut into blocks of one size. */
export interface Pool {
  readonly family: IpFamily;
  /** Its range, `10.244.0.0/16`; also its name. */
  readonly name: string;
  /** The prefix length of its blocks. */
  readonly blockSize: number;
  /** How many blocks are used: a power of two. */
  readonly blockCount: number;
  /** The addresses of those blocks. */
  readonly span: IpSpan;
}

const DEFAULT_BLOCK_SIZE = { IPv4: 26, IPv6: 122 } as const;
/** An IPv6 pool may have more blocks than there are grains of sand. For each that is used a number is kept: 4 MiB for these. */
const MOST_BLOCKS = 2 ** 20;
/** Fewer addresses than 4 leave nothing for pods beside network address and gateway. */
const FEWEST_HOST_BITS = 2;

/**
 * Checks the pools of a cluster. Every node has to be given the same ones. Of a pool with more than 2^20 blocks the first
 * 2^20 are used.
 *
 * @returns the pools, in their order: a block is taken out of the first one of its family that has one
 * @throws ERR_CONFIG for what is no pool, and for pools that overlap
 */
export function parsePools(configs: readonly PoolConfig[]): readonly Pool[] {
  const pools = configs.map(parsePool);
  pools.forEach((pool, index) => {
    const other = pools.slice(0, index).find(({ span }) => spansOverlap(span, pool.span));
    if (other) throw unusable(pool.name, `it overlaps the pool "${other.name}"; leave one of them out`);
  });
  return pools;
}

function parsePool({ cidr: text, blockSize: given }: PoolConfig): Pool {
  const cidr = parseCidr(text);
  const { family } = cidr.address;
  const bits = addressBits(family);
  const blockSize = given ?? DEFAULT_BLOCK_SIZE[family];
  const longest = bits - FEWEST_HOST_BITS;
  if (!Number.isInteger(blockSize) || blockSize < cidr.prefixLength || blockSize > longest) {
    throw unusable(text, `its block size has to be from /${cidr.prefixLength} to /${longest}, found /${blockSize}`);
  }
  const special = specialRange(cidr.address);
  if (special) throw unusable(text, `${special} addresses are not for pods`);
  // The name of an object cannot begin with what a colon becomes.
  if (formatIp(cidr.address).startsWith(':')) throw unusable(text, 'addresses that begin with "::" are not for pods');
  const blockCount = Math.min(MOST_BLOCKS, 2 ** (blockSize - cidr.prefixLength));
  const { first } = spanOfCidr(cidr);
  const last = first + BigInt(blockCount) * 2n ** BigInt(bits - blockSize) - 1n;
  return { family, name: formatCidr(cidr), blockSize, blockCount, span: { family, first, last } };
}

function unusable(pool: string, why: string): NodeplaneError {
  return new NodeplaneError('ERR_CONFIG', `Cannot use the pool of pod addresses "${pool}": ${why}`, {
    facts: { pool },
  });
}

/** How many addresses a block of the pool has. */
export function addressesPerBlock({ family, blockSize }: Pool): number {
  return 2 ** (addressBits(family) - blockSize);
}

/** The range of a block of the pool. @param index from 0 */
export function blockAt({ family, blockSize, span }: Pool, index: number): string {
  const first = span.first + (BigInt(index) << BigInt(addressBits(family) - blockSize));
  return formatCidr({ address: ipFromValue(family, first), prefixLength: blockSize });
}

/** The blocks of the pool that a range touches, by their indexes, both included; undefined: none. */
export function blocksTouched(pool: Pool, cidr: Cidr): { readonly first: number; readonly last: number } | undefined {
  const range = spanOfCidr(cidr);
  const { family, span, blockSize } = pool;
  if (!spansOverlap(range, span)) return undefined;
  const hostBits = BigInt(addressBits(family) - blockSize);
  const indexOf = (address: bigint) => Number((address - span.first) >> hostBits);
  return {
    first: indexOf(range.first > span.first ? range.first : span.first),
    last: indexOf(range.last < span.last ? range.last : span.last),
  };
}
