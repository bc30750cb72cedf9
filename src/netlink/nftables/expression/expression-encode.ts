import { NodeplaneError } from '../../../core/index.ts';
import type { AttributeWriter } from '../../attribute.ts';
import type { AttributeDeclarations, AttributeSet, AttributeValues } from '../../attribute-set.ts';
import { NLA_F_NESTED } from '../../uapi/netlink.ts';
import {
  NF_NAT_RANGE_PROTO_SPECIFIED,
  NFT_DYNSET_F_EXPR,
  NFT_LIMIT_F_INV,
  NFT_LOOKUP_F_INV,
  NFT_OBJECT_COUNTER,
  NFT_PAYLOAD_CSUM_INET,
  NFT_PAYLOAD_L4CSUM_PSEUDOHDR,
  NFT_REG_VERDICT,
  NFTA_EXPR_DATA,
  NFTA_EXPR_NAME,
  NFTA_FIB_F_PRESENT,
  NFTA_LIST_ELEM,
} from '../../uapi/nf-tables.ts';
import { NFT_EXPRESSIONS } from '../../uapi/nf-tables-expressions.ts';
import * as names from '../names.ts';
import type { Expression } from './expression.ts';
import { be64, optionalRegister, registerNumber as register } from './integers.ts';
import type { NatFlag } from './nat-expression.ts';
import { verdictData } from './verdict.ts';

type KernelName = keyof typeof NFT_EXPRESSIONS;
type Kind = Expression['kind'];
type OfKind<K extends Kind> = Extract<Expression, { kind: K }>;
type ValuesOf<N extends KernelName> =
  (typeof NFT_EXPRESSIONS)[N] extends AttributeSet<infer D> ? AttributeValues<D> : never;

/** How a kind is written: the kernel's name of the expression, and its attributes in the order `nft` writes them. */
interface Encoder<K extends Kind> {
  readonly name: string;
  encode(writer: AttributeWriter, expression: OfKind<K>): void;
}

function encoder<N extends KernelName, K extends Kind>(
  name: N,
  values: (expression: OfKind<K>) => ValuesOf<N>,
): Encoder<K> {
  const set = NFT_EXPRESSIONS[name] as unknown as AttributeSet<AttributeDeclarations>;
  return {
    name,
    encode: (writer, expression) => set.encode(writer, values(expression) as AttributeValues<AttributeDeclarations>),
  };
}

const ENCODERS: { readonly [K in Exclude<Kind, 'match' | 'target' | 'unknown'>]: Encoder<K> } = {
  payload: encoder('payload', ({ base, offset, length, to }) => ({
    NFTA_PAYLOAD_DREG: register(to),
    NFTA_PAYLOAD_BASE: names.PAYLOAD_BASES.numbers[base],
    NFTA_PAYLOAD_OFFSET: offset,
    NFTA_PAYLOAD_LEN: length,
  })),
  'payload-set': encoder('payload', ({ base, offset, length, from, checksumOffset, pseudoHeader }) => ({
    NFTA_PAYLOAD_SREG: register(from),
    NFTA_PAYLOAD_BASE: names.PAYLOAD_BASES.numbers[base],
    NFTA_PAYLOAD_OFFSET: offset,
    NFTA_PAYLOAD_LEN: length,
    NFTA_PAYLOAD_CSUM_TYPE: checksumOffset === undefined ? 0 : NFT_PAYLOAD_CSUM_INET,
    NFTA_PAYLOAD_CSUM_OFFSET: checksumOffset ?? 0,
    NFTA_PAYLOAD_CSUM_FLAGS: pseudoHeader ? NFT_PAYLOAD_L4CSUM_PSEUDOHDR : undefined,
  })),
  meta: encoder('meta', ({ key, to }) => ({
    NFTA_META_KEY: names.META_KEYS.numbers[key],
    NFTA_META_DREG: register(to),
  })),
  'meta-set': encoder('meta', ({ key, from }) => ({
    NFTA_META_KEY: names.META_KEYS.numbers[key],
    NFTA_META_SREG: register(from),
  })),
  cmp: encoder('cmp', ({ from, op, data }) => ({
    NFTA_CMP_SREG: register(from),
    NFTA_CMP_OP: names.CMP_OPS.numbers[op],
    NFTA_CMP_DATA: { NFTA_DATA_VALUE: data },
  })),
  range: encoder('range', ({ from, op, first, last }) => ({
    NFTA_RANGE_SREG: register(from),
    NFTA_RANGE_OP: names.RANGE_OPS.numbers[op],
    NFTA_RANGE_FROM_DATA: { NFTA_DATA_VALUE: first },
    NFTA_RANGE_TO_DATA: { NFTA_DATA_VALUE: last },
  })),
  bitwise: encoder('bitwise', ({ from, to, mask, xor }) => ({
    NFTA_BITWISE_SREG: register(from),
    NFTA_BITWISE_DREG: register(to),
    NFTA_BITWISE_OP: 0,
    NFTA_BITWISE_LEN: mask.length,
    NFTA_BITWISE_MASK: { NFTA_DATA_VALUE: mask },
    NFTA_BITWISE_XOR: { NFTA_DATA_VALUE: xor },
  })),
  shift: encoder('bitwise', ({ direction, from, to, length, bits }) => ({
    NFTA_BITWISE_SREG: register(from),
    NFTA_BITWISE_DREG: register(to),
    NFTA_BITWISE_OP: names.SHIFTS.numbers[direction],
    NFTA_BITWISE_LEN: length,
    NFTA_BITWISE_DATA: { NFTA_DATA_VALUE: new Uint8Array(Uint32Array.of(bits).buffer) },
  })),
  byteorder: encoder('byteorder', ({ op, from, to, length, size }) => ({
    NFTA_BYTEORDER_SREG: register(from),
    NFTA_BYTEORDER_DREG: register(to),
    NFTA_BYTEORDER_OP: names.BYTEORDER_OPS.numbers[op],
    NFTA_BYTEORDER_LEN: length,
    NFTA_BYTEORDER_SIZE: size,
  })),
  lookup: encoder('lookup', ({ set, setId, from, to, invert }) => ({
    NFTA_LOOKUP_SREG: register(from),
    NFTA_LOOKUP_DREG: to === 'verdict' ? NFT_REG_VERDICT : optionalRegister(to),
    NFTA_LOOKUP_SET: set,
    NFTA_LOOKUP_SET_ID: setId,
    NFTA_LOOKUP_FLAGS: invert ? NFT_LOOKUP_F_INV : undefined,
  })),
  immediate: encoder('immediate', ({ to, data }) => ({
    NFTA_IMMEDIATE_DREG: register(to),
    NFTA_IMMEDIATE_DATA: { NFTA_DATA_VALUE: data },
  })),
  verdict: encoder('immediate', ({ verdict }) => ({
    NFTA_IMMEDIATE_DREG: NFT_REG_VERDICT,
    NFTA_IMMEDIATE_DATA: verdictData(verdict),
  })),
  nat: encoder('nat', ({ type, family, address, addressMax, port, portMax, flags }) => ({
    NFTA_NAT_TYPE: names.NAT_TYPES.numbers[type],
    NFTA_NAT_FAMILY: names.FAMILIES.numbers[family],
    NFTA_NAT_REG_ADDR_MIN: optionalRegister(address),
    NFTA_NAT_REG_ADDR_MAX: optionalRegister(addressMax),
    NFTA_NAT_REG_PROTO_MIN: optionalRegister(port),
    NFTA_NAT_REG_PROTO_MAX: optionalRegister(portMax),
    NFTA_NAT_FLAGS: natFlags(flags, port),
  })),
  masquerade: encoder('masq', ({ port, portMax, flags }) => ({
    NFTA_MASQ_FLAGS: natFlags(flags, port),
    NFTA_MASQ_REG_PROTO_MIN: optionalRegister(port),
    NFTA_MASQ_REG_PROTO_MAX: optionalRegister(portMax),
  })),
  redirect: encoder('redir', ({ port, portMax, flags }) => ({
    NFTA_REDIR_REG_PROTO_MIN: optionalRegister(port),
    NFTA_REDIR_REG_PROTO_MAX: optionalRegister(portMax),
    NFTA_REDIR_FLAGS: natFlags(flags, port),
  })),
  fib: encoder('fib', ({ result, flags, present, to }) => ({
    NFTA_FIB_FLAGS: names.FIB_FLAGS.bits(flags) | (present ? NFTA_FIB_F_PRESENT : 0),
    NFTA_FIB_RESULT: names.FIB_RESULTS.numbers[result],
    NFTA_FIB_DREG: register(to),
  })),
  rt: encoder('rt', ({ key, to }) => ({
    NFTA_RT_KEY: names.RT_KEYS.numbers[key],
    NFTA_RT_DREG: register(to),
  })),
  ct: encoder('ct', ({ key, direction, to }) => ({
    NFTA_CT_KEY: names.CT_KEYS.numbers[key],
    NFTA_CT_DREG: register(to),
    NFTA_CT_DIRECTION: direction && names.DIRECTIONS.numbers[direction],
  })),
  'ct-set': encoder('ct', ({ key, direction, from }) => ({
    NFTA_CT_KEY: names.CT_KEYS.numbers[key],
    NFTA_CT_DIRECTION: direction && names.DIRECTIONS.numbers[direction],
    NFTA_CT_SREG: register(from),
  })),
  numgen: encoder('numgen', ({ mode, modulus, offset, to }) => ({
    NFTA_NG_DREG: register(to),
    NFTA_NG_MODULUS: modulus,
    NFTA_NG_TYPE: names.NUMGEN_MODES.numbers[mode],
    NFTA_NG_OFFSET: offset ?? 0,
  })),
  jhash: encoder('hash', ({ from, length, to, modulus, seed, offset }) => ({
    NFTA_HASH_SREG: register(from),
    NFTA_HASH_DREG: register(to),
    NFTA_HASH_LEN: length,
    NFTA_HASH_MODULUS: modulus,
    NFTA_HASH_SEED: seed,
    NFTA_HASH_OFFSET: offset ?? 0,
    NFTA_HASH_TYPE: 0,
  })),
  dynset: {
    name: 'dynset',
    encode(writer, { operation, set, setId, key, data, timeoutMs, expressions = [] }) {
      NFT_EXPRESSIONS.dynset.encode(writer, {
        NFTA_DYNSET_SREG_KEY: register(key),
        NFTA_DYNSET_SREG_DATA: optionalRegister(data),
        NFTA_DYNSET_OP: names.DYNSET_OPERATIONS.numbers[operation],
        NFTA_DYNSET_TIMEOUT: timeoutMs === undefined ? undefined : be64(timeoutMs, 'NFTA_DYNSET_TIMEOUT'),
        NFTA_DYNSET_SET_NAME: set,
        NFTA_DYNSET_SET_ID: setId,
        NFTA_DYNSET_FLAGS: expressions.length > 1 ? NFT_DYNSET_F_EXPR : undefined,
      });
      const { declarations } = NFT_EXPRESSIONS.dynset;
      if (expressions.length === 1) {
        const start = writer.nest(declarations.NFTA_DYNSET_EXPR[0]);
        encodeExpression(writer, expressions[0]!);
        writer.end(start, 'NFTA_DYNSET_EXPR');
      } else if (expressions.length > 1) {
        encodeExpressions(writer, declarations.NFTA_DYNSET_EXPRESSIONS[0], expressions);
      }
    },
  },
  reject: encoder('reject', (expression) => ({
    NFTA_REJECT_TYPE: names.REJECT_TYPES.numbers[expression.type],
    NFTA_REJECT_ICMP_CODE: 'code' in expression ? expression.code : 0,
  })),
  counter: encoder('counter', ({ packets, bytes }) => ({
    NFTA_COUNTER_BYTES: bytes === undefined ? undefined : be64(bytes, 'NFTA_COUNTER_BYTES'),
    NFTA_COUNTER_PACKETS: packets === undefined ? undefined : be64(packets, 'NFTA_COUNTER_PACKETS'),
  })),
  limit: encoder('limit', ({ rate, unit, burst, of, invert }) => ({
    NFTA_LIMIT_RATE: be64(rate, 'NFTA_LIMIT_RATE'),
    NFTA_LIMIT_UNIT: be64(names.LIMIT_UNITS.numbers[unit], 'NFTA_LIMIT_UNIT'),
    NFTA_LIMIT_BURST: burst,
    NFTA_LIMIT_TYPE: names.LIMIT_TYPES.numbers[of],
    NFTA_LIMIT_FLAGS: invert ? NFT_LIMIT_F_INV : 0,
  })),
  notrack: encoder('notrack', () => ({})),
  log: encoder('log', ({ prefix, level, group, snapLength }) => ({
    NFTA_LOG_PREFIX: prefix,
    NFTA_LOG_GROUP: group,
    NFTA_LOG_SNAPLEN: snapLength,
    NFTA_LOG_LEVEL: level,
  })),
  objref: encoder('objref', ({ name }) => ({
    NFTA_OBJREF_IMM_TYPE: NFT_OBJECT_COUNTER,
    NFTA_OBJREF_IMM_NAME: name,
  })),
};

/** Appends a list of expressions as an attribute of `type`. Throws ERR_ENCODE. */
export function encodeExpressions(writer: AttributeWriter, type: number, expressions: readonly Expression[]): void {
  const list = writer.nest(type | NLA_F_NESTED);
  for (const expression of expressions) {
    const start = writer.nest(NFTA_LIST_ELEM | NLA_F_NESTED);
    encodeExpression(writer, expression);
    writer.end(start, 'NFTA_LIST_ELEM');
  }
  writer.end(list, 'a list of expressions');
}

/** Appends the two attributes of one expression. Throws ERR_ENCODE, also for expressions only read back. */
function encodeExpression(writer: AttributeWriter, expression: Expression): void {
  const { kind } = expression;
  if (kind === 'unknown' || kind === 'match' || kind === 'target') {
    throw new NodeplaneError('ERR_ENCODE', `Cannot write the expression "${expression.name}": it is only read back`);
  }
  const { name, encode } = ENCODERS[kind] as Encoder<Kind>;
  writer.string(NFTA_EXPR_NAME, name, 'NFTA_EXPR_NAME');
  // It has no attributes of its own.
  if (expression.kind === 'notrack') return;
  const data = writer.nest(NFTA_EXPR_DATA | NLA_F_NESTED);
  encode(writer, expression);
  writer.end(data, `the ${expression.kind} expression`);
}

/** Undefined for none. That a port is given has to be said for `masq` and `redir`, and does no harm for `nat`. */
function natFlags(flags: readonly NatFlag[] | undefined, port: number | undefined): number | undefined {
  const bits = names.NAT_FLAGS.bits(flags) | (port === undefined ? 0 : NF_NAT_RANGE_PROTO_SPECIFIED);
  return bits === 0 ? undefined : bits;
}
