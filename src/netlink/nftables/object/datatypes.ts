import { NodeplaneError } from '../../../core/index.ts';

/** A type of set keys and values, by the name `nft` gives it. */
export interface Datatype {
  /** The number `nft` knows it by (enum datatypes of its source); the kernel only hands it back. */
  readonly id: number;
  /** In bytes. */
  readonly length: number;
  /** How integers of it are stored in registers and elements: packet fields in network order, the rest in host order. */
  readonly byteorder: 'host' | 'network';
}

const DATATYPES = {
  /** 32 bits in host order, as `numgen` makes them. nft's integers have any length, and no name in a set: `typeof.ts`. */
  integer: { id: 4, length: 4, byteorder: 'host' },
  ipv4_addr: { id: 7, length: 4, byteorder: 'network' },
  ipv6_addr: { id: 8, length: 16, byteorder: 'network' },
  ether_addr: { id: 9, length: 6, byteorder: 'network' },
  inet_proto: { id: 12, length: 1, byteorder: 'network' },
  inet_service: { id: 13, length: 2, byteorder: 'network' },
  mark: { id: 19, length: 4, byteorder: 'host' },
  iface_index: { id: 20, length: 4, byteorder: 'host' },
  ifname: { id: 41, length: 16, byteorder: 'host' },
} as const satisfies Record<string, Datatype>;

/** The datatypes sets can have here. `unknown` is only read back: of sets that are not ours. */
export type DatatypeName = keyof typeof DATATYPES | 'unknown';

/** What a datatype is. Throws ERR_ENCODE for `unknown`. */
export function datatype(name: DatatypeName): Datatype {
  if (name === 'unknown') throw new NodeplaneError('ERR_ENCODE', 'Cannot write a set whose datatype is not known');
  return DATATYPES[name];
}

const BITS = 6;
const NAMES = new Map(Object.entries(DATATYPES).map(([name, { id }]) => [id as number, name as DatatypeName]));

/** The number of a type or concatenation: 6 bits for each field, the first one in the highest. */
export function typeNumber(fields: readonly DatatypeName[]): number {
  return fields.reduce((sum, name) => ((sum << BITS) | datatype(name).id) >>> 0, 0);
}

/** The fields behind such a number; none for 0, which other programs than `nft` write. */
export function typeFields(number: number): DatatypeName[] {
  const fields: DatatypeName[] = [];
  for (let rest = number; rest !== 0; rest >>>= BITS) fields.unshift(NAMES.get(rest & ((1 << BITS) - 1)) ?? 'unknown');
  return fields;
}

/** Bytes of a key or value in registers and elements: the fields of a concatenation are padded to 4 bytes each. */
export function typeLength(fields: readonly DatatypeName[]): number {
  if (fields.length === 1) return datatype(fields[0]!).length;
  return fields.reduce((sum, name) => sum + Math.ceil(datatype(name).length / 4) * 4, 0);
}
