import { type DatatypeName, typeFields } from './datatypes.ts';
import { numberRecord, record } from './userdata-record.ts';

// What `nft` calls `typeof`. It has a name for each datatype but that of bare integers; a set that is asked by a number from
// `numgen` says an expression of each field's type in place of the names, or the rules that ask it could be listed and not loaded
// again. The kernel keeps it in the set's userdata, unread.

/** Records of the userdata of a set: an expression of the key's type, and one of the data's. */
export const UDATA_SET_KEY_TYPEOF = 3;
export const UDATA_SET_DATA_TYPEOF = 4;

/** enum expr_types of nft. */
const EXPRESSION = { payload: 7, meta: 9, concat: 13, numgen: 23 } as const;
const NFT_META_L4PROTO = 16;
const NFT_NG_RANDOM = 1;
/** Only said: nothing draws among so many. */
const MODULUS = 65_536;

interface TypeofExpression {
  readonly text: string;
  readonly type: number;
  /** What the expression's own records hold, from number 0 on, each a 32-bit number in host order. */
  readonly fields: readonly number[];
}

/** A packet's field, by nft's numbers of the header (enum proto_desc_id) and of the field in it. */
const field = (text: string, header: number, of: number): TypeofExpression => ({
  text,
  type: EXPRESSION.payload,
  fields: [header, of],
});

const EXPRESSIONS: Partial<Record<DatatypeName, TypeofExpression>> = {
  ipv4_addr: field('ip daddr', 12, 12),
  ipv6_addr: field('ip6 daddr', 13, 9),
  inet_proto: { text: 'meta l4proto', type: EXPRESSION.meta, fields: [NFT_META_L4PROTO] },
  inet_service: field('th dport', 11, 2),
  integer: { text: `numgen random mod ${MODULUS}`, type: EXPRESSION.numgen, fields: [NFT_NG_RANDOM, MODULUS, 0] },
};

/** Whether a set says its types by expressions: where there is an integer among them, and there is an expression for all others. */
export function saysTypeof(key: readonly DatatypeName[], data: readonly DatatypeName[] | 'verdict' = []): boolean {
  const types = data === 'verdict' ? [] : [...key, ...data];
  return types.includes('integer') && types.every((type) => EXPRESSIONS[type] !== undefined);
}

/** `ip daddr . th dport`, of a set that says so. */
export function typeofText(fields: readonly DatatypeName[]): string {
  return fields.map((name) => EXPRESSIONS[name]!.text).join(' . ');
}

/** The same as the bytes of a record's value. */
export function typeofValue(fields: readonly DatatypeName[]): number[] {
  const expressions = fields.map((name) => EXPRESSIONS[name]!);
  if (expressions.length === 1) return expressionValue(expressions[0]!.type, ownFields(expressions[0]!));
  const parts = expressions.flatMap((one, i) => record(i, expressionValue(one.type, ownFields(one))));
  return expressionValue(EXPRESSION.concat, parts);
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

function ownFields({ fields }: TypeofExpression): number[] {
  return fields.flatMap((value, i) => numberRecord(i, value));
}

function expressionValue(type: number, own: readonly number[]): number[] {
  return [...numberRecord(0, type), ...record(1, own)];
}
