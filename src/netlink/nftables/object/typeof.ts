import { type DatatypeName, typeFields } from './datatypes.ts';
import { numberRecord, record } from './userdata-record.ts';

// What `nft` calls `typeof`. It has a name for each datatype but that of bare integers; a set that is asked by a number from
// `numgen` says an expression of each field's type in place of the names, or the rules that ask it could be listed and not loaded
// again. The kernel keeps it in the set's userdata, unread.

/** Records of the userdata of a set: an expression of the key's type, and one of the data's. */
export const UDATA_SET_KEY_TYPEOF = 3;
export const UDATA_SET_DATA_TYPEOF = 4;

/**
 * How an expression reads, and what a record holds of it in hexadecimal: as record 0 its number in enum expr_types of
 * nft, as record 1 what it consists of, as records of 32-bit numbers in host order.
 */
type TypeofExpression = readonly [text: string, bytes: string];

const EXPRESSIONS: Partial<Record<DatatypeName, TypeofExpression>> = {
  // EXPR_PAYLOAD: enum proto_desc_id, and the field of that header.
  ipv4_addr: ['ip daddr', '000407000000010c00040c00000001040c000000'],
  ipv6_addr: ['ip6 daddr', '000407000000010c00040d000000010409000000'],
  inet_service: ['th dport', '000407000000010c00040b000000010402000000'],
  // EXPR_META: NFT_META_L4PROTO.
  inet_proto: ['meta l4proto', '0004090000000106000410000000'],
  // EXPR_NUMGEN: NFT_NG_RANDOM, the modulus, which is only said, and the offset.
  integer: ['numgen random mod 65536', '0004170000000112000401000000010400000100020400000000'],
};
const EXPR_CONCAT = 13;

/** Whether a set says its types by expressions: where there is an integer among them, and there is an expression for all others. */
export function saysTypeof(key: readonly DatatypeName[], data: readonly DatatypeName[] | 'verdict' = []): boolean {
  const types = data === 'verdict' ? [] : [...key, ...data];
  return types.includes('integer') && types.every((type) => EXPRESSIONS[type] !== undefined);
}

/** `ip daddr . th dport`, of a set that says so. */
export function typeofText(fields: readonly DatatypeName[]): string {
  return fields.map((name) => EXPRESSIONS[name]![0]).join(' . ');
}

/** The same as the bytes of a record's value. */
export function typeofValue(fields: readonly DatatypeName[]): number[] {
  const [first, ...more] = fields.map((name) => [...Buffer.from(EXPRESSIONS[name]![1], 'hex')]);
  if (more.length === 0) return first!;
  return [
    ...numberRecord(0, EXPR_CONCAT),
    ...record(
      1,
      [first!, ...more].flatMap((one, i) => record(i, one)),
    ),
  ];
}

/**
 * The fields behind the number of a type, for a set with this value in its record. Integers that others keep may have any length and
 * either byte order: they are `unknown`.
 */
export function typeofFields(number: number, value: Uint8Array | undefined): DatatypeName[] {
  const fields = typeFields(number);
  if (!fields.includes('integer')) return fields;
  const isOurs =
    value !== undefined && saysTypeof(fields) && Buffer.from(value).equals(Buffer.from(typeofValue(fields)));
  return isOurs ? fields : fields.map((name) => (name === 'integer' ? 'unknown' : name));
}
