import { readAttributes } from '../../attribute.ts';
import { decodeError } from '../../decode-error.ts';
import { readBe64 } from '../../integer.ts';
import {
  NFT_LIMIT_F_INV,
  NFT_LOOKUP_F_INV,
  NFT_OBJECT_COUNTER,
  NFT_PAYLOAD_CSUM_INET,
  NFT_PAYLOAD_L4CSUM_PSEUDOHDR,
  NFT_REG_VERDICT,
  NFTA_EXPR,
  NFTA_FIB_F_PRESENT,
} from '../../uapi/nf-tables.ts';
import { NFT_EXPRESSIONS as SETS } from '../../uapi/nf-tables-expressions.ts';
import * as names from '../names.ts';
import type { Expression } from './expression.ts';
import { need, readOptional64, readRegister } from './integers.ts';
import { readVerdict } from './verdict.ts';

/** Undefined for a form of the expression that the model does not have. */
type Decoder = (data: Uint8Array) => Expression | undefined;

/** By the kernel's name. Values are views into the message; optional fields that say nothing are left out. */
const DECODERS: Readonly<Record<keyof typeof SETS, Decoder>> = {
  payload(data) {
    const a = SETS.payload.decode(data);
    const base = names.PAYLOAD_BASES.name(need(a, 'NFTA_PAYLOAD_BASE'));
    const field = { offset: need(a, 'NFTA_PAYLOAD_OFFSET'), length: need(a, 'NFTA_PAYLOAD_LEN') };
    if (!base) return undefined;
    if (a.NFTA_PAYLOAD_SREG === undefined) {
      return { kind: 'payload', base, ...field, to: readRegister(need(a, 'NFTA_PAYLOAD_DREG'), 'NFTA_PAYLOAD_DREG') };
    }
    const pseudoHeader = ((a.NFTA_PAYLOAD_CSUM_FLAGS ?? 0) & NFT_PAYLOAD_L4CSUM_PSEUDOHDR) !== 0;
    return {
      kind: 'payload-set',
      base,
      ...field,
      from: readRegister(a.NFTA_PAYLOAD_SREG, 'NFTA_PAYLOAD_SREG'),
      ...(a.NFTA_PAYLOAD_CSUM_TYPE === NFT_PAYLOAD_CSUM_INET && {
        checksumOffset: need(a, 'NFTA_PAYLOAD_CSUM_OFFSET'),
      }),
      ...(pseudoHeader && { pseudoHeader }),
    };
  },
  meta(data) {
    const a = SETS.meta.decode(data);
    const key = names.META_KEYS.name(need(a, 'NFTA_META_KEY'));
    if (!key) return undefined;
    if (a.NFTA_META_DREG !== undefined)
      return { kind: 'meta', key, to: readRegister(a.NFTA_META_DREG, 'NFTA_META_DREG') };
    if (key !== 'mark' && key !== 'priority' && key !== 'nftrace' && key !== 'pkttype') return undefined;
    return { kind: 'meta-set', key, from: readRegister(need(a, 'NFTA_META_SREG'), 'NFTA_META_SREG') };
  },
  cmp(data) {
    const a = SETS.cmp.decode(data);
    const op = names.CMP_OPS.name(need(a, 'NFTA_CMP_OP'));
    if (!op) return undefined;
    const from = readRegister(need(a, 'NFTA_CMP_SREG'), 'NFTA_CMP_SREG');
    return { kind: 'cmp', from, op, data: need(need(a, 'NFTA_CMP_DATA'), 'NFTA_DATA_VALUE') };
  },
  range(data) {
    const a = SETS.range.decode(data);
    const op = names.RANGE_OPS.name(need(a, 'NFTA_RANGE_OP'));
    if (!op) return undefined;
    return {
      kind: 'range',
      from: readRegister(need(a, 'NFTA_RANGE_SREG'), 'NFTA_RANGE_SREG'),
      op,
      first: need(need(a, 'NFTA_RANGE_FROM_DATA'), 'NFTA_DATA_VALUE'),
      last: need(need(a, 'NFTA_RANGE_TO_DATA'), 'NFTA_DATA_VALUE'),
    };
  },
  bitwise(data) {
    const a = SETS.bitwise.decode(data);
    const registers = {
      from: readRegister(need(a, 'NFTA_BITWISE_SREG'), 'NFTA_BITWISE_SREG'),
      to: readRegister(need(a, 'NFTA_BITWISE_DREG'), 'NFTA_BITWISE_DREG'),
    };
    const op = a.NFTA_BITWISE_OP ?? 0;
    if (op === 0) {
      return {
        kind: 'bitwise',
        ...registers,
        mask: need(need(a, 'NFTA_BITWISE_MASK'), 'NFTA_DATA_VALUE'),
        xor: need(need(a, 'NFTA_BITWISE_XOR'), 'NFTA_DATA_VALUE'),
      };
    }
    const direction = names.SHIFTS.name(op);
    if (!direction) return undefined;
    const value = need(need(a, 'NFTA_BITWISE_DATA'), 'NFTA_DATA_VALUE');
    if (value.length !== 4) throw decodeError('NFTA_BITWISE_DATA', `it has ${value.length} bytes, expected 4`);
    const bits = new DataView(value.buffer, value.byteOffset, 4).getUint32(0, true);
    return { kind: 'shift', direction, ...registers, length: need(a, 'NFTA_BITWISE_LEN'), bits };
  },
  byteorder(data) {
    const a = SETS.byteorder.decode(data);
    const op = names.BYTEORDER_OPS.name(need(a, 'NFTA_BYTEORDER_OP'));
    const size = need(a, 'NFTA_BYTEORDER_SIZE');
    if (!op || (size !== 2 && size !== 4 && size !== 8)) return undefined;
    return {
      kind: 'byteorder',
      op,
      from: readRegister(need(a, 'NFTA_BYTEORDER_SREG'), 'NFTA_BYTEORDER_SREG'),
      to: readRegister(need(a, 'NFTA_BYTEORDER_DREG'), 'NFTA_BYTEORDER_DREG'),
      length: need(a, 'NFTA_BYTEORDER_LEN'),
      size,
    };
  },
  lookup(data) {
    const a = SETS.lookup.decode(data);
    const to = a.NFTA_LOOKUP_DREG;
    const invert = ((a.NFTA_LOOKUP_FLAGS ?? 0) & NFT_LOOKUP_F_INV) !== 0;
    return {
      kind: 'lookup',
      set: need(a, 'NFTA_LOOKUP_SET'),
      from: readRegister(need(a, 'NFTA_LOOKUP_SREG'), 'NFTA_LOOKUP_SREG'),
      ...(to !== undefined && { to: to === NFT_REG_VERDICT ? 'verdict' : readRegister(to, 'NFTA_LOOKUP_DREG') }),
      ...(invert && { invert }),
    };
  },
  immediate(data) {
    const a = SETS.immediate.decode(data);
    const value = need(a, 'NFTA_IMMEDIATE_DATA');
    const to = need(a, 'NFTA_IMMEDIATE_DREG');
    if (to !== NFT_REG_VERDICT) {
      return { kind: 'immediate', to: readRegister(to, 'NFTA_IMMEDIATE_DREG'), data: need(value, 'NFTA_DATA_VALUE') };
    }
    const { NFTA_VERDICT_CODE, NFTA_VERDICT_CHAIN } = need(value, 'NFTA_DATA_VERDICT');
    return { kind: 'verdict', verdict: readVerdict(NFTA_VERDICT_CODE, NFTA_VERDICT_CHAIN) };
  },
  nat(data) {
    const a = SETS.nat.decode(data);
    const type = names.NAT_TYPES.name(need(a, 'NFTA_NAT_TYPE'));
    const family = names.FAMILIES.name(need(a, 'NFTA_NAT_FAMILY'));
    if (!type || (family !== 'ip' && family !== 'ip6')) return undefined;
    return {
      kind: 'nat',
      type,
      family,
      ...range('address', 'addressMax', a.NFTA_NAT_REG_ADDR_MIN, a.NFTA_NAT_REG_ADDR_MAX),
      ...range('port', 'portMax', a.NFTA_NAT_REG_PROTO_MIN, a.NFTA_NAT_REG_PROTO_MAX),
      ...natFlags(a.NFTA_NAT_FLAGS),
    };
  },
  masq(data) {
    const a = SETS.masq.decode(data);
    const ports = range('port', 'portMax', a.NFTA_MASQ_REG_PROTO_MIN, a.NFTA_MASQ_REG_PROTO_MAX);
    return { kind: 'masquerade', ...ports, ...natFlags(a.NFTA_MASQ_FLAGS) };
  },
  redir(data) {
    const a = SETS.redir.decode(data);
    const ports = range('port', 'portMax', a.NFTA_REDIR_REG_PROTO_MIN, a.NFTA_REDIR_REG_PROTO_MAX);
    return { kind: 'redirect', ...ports, ...natFlags(a.NFTA_REDIR_FLAGS) };
  },
  fib(data) {
    const a = SETS.fib.decode(data);
    const result = names.FIB_RESULTS.name(need(a, 'NFTA_FIB_RESULT'));
    if (!result) return undefined;
    const bits = need(a, 'NFTA_FIB_FLAGS');
    const present = (bits & NFTA_FIB_F_PRESENT) !== 0;
    return {
      kind: 'fib',
      result,
      flags: names.FIB_FLAGS.names(bits),
      ...(present && { present }),
      to: readRegister(need(a, 'NFTA_FIB_DREG'), 'NFTA_FIB_DREG'),
    };
  },
  rt(data) {
    const a = SETS.rt.decode(data);
    const key = names.RT_KEYS.name(need(a, 'NFTA_RT_KEY'));
    return key && { kind: 'rt', key, to: readRegister(need(a, 'NFTA_RT_DREG'), 'NFTA_RT_DREG') };
  },
  ct(data) {
    const a = SETS.ct.decode(data);
    const key = names.CT_KEYS.name(need(a, 'NFTA_CT_KEY'));
    if (!key) return undefined;
    const direction = a.NFTA_CT_DIRECTION === undefined ? undefined : names.DIRECTIONS.name(a.NFTA_CT_DIRECTION);
    const way = direction && { direction };
    if (a.NFTA_CT_DREG !== undefined)
      return { kind: 'ct', key, ...way, to: readRegister(a.NFTA_CT_DREG, 'NFTA_CT_DREG') };
    if (key !== 'mark' && key !== 'zone') return undefined;
    return { kind: 'ct-set', key, ...way, from: readRegister(need(a, 'NFTA_CT_SREG'), 'NFTA_CT_SREG') };
  },
  numgen(data) {
    const a = SETS.numgen.decode(data);
    const mode = names.NUMGEN_MODES.name(need(a, 'NFTA_NG_TYPE'));
    if (!mode) return undefined;
    return {
      kind: 'numgen',
      mode,
      modulus: need(a, 'NFTA_NG_MODULUS'),
      ...nonZero('offset', a.NFTA_NG_OFFSET),
      to: readRegister(need(a, 'NFTA_NG_DREG'), 'NFTA_NG_DREG'),
    };
  },
  hash(data) {
    const a = SETS.hash.decode(data);
    if ((a.NFTA_HASH_TYPE ?? 0) !== 0) return undefined;
    return {
      kind: 'jhash',
      from: readRegister(need(a, 'NFTA_HASH_SREG'), 'NFTA_HASH_SREG'),
      length: need(a, 'NFTA_HASH_LEN'),
      to: readRegister(need(a, 'NFTA_HASH_DREG'), 'NFTA_HASH_DREG'),
      modulus: need(a, 'NFTA_HASH_MODULUS'),
      ...(a.NFTA_HASH_SEED !== undefined && { seed: a.NFTA_HASH_SEED }),
      ...nonZero('offset', a.NFTA_HASH_OFFSET),
    };
  },
  dynset(data) {
    const a = SETS.dynset.decode(data);
    const operation = names.DYNSET_OPERATIONS.name(need(a, 'NFTA_DYNSET_OP'));
    if (!operation) return undefined;
    const expressions = a.NFTA_DYNSET_EXPR
      ? [decodeExpression(a.NFTA_DYNSET_EXPR)]
      : a.NFTA_DYNSET_EXPRESSIONS && decodeExpressions(a.NFTA_DYNSET_EXPRESSIONS);
    return {
      kind: 'dynset',
      operation,
      set: need(a, 'NFTA_DYNSET_SET_NAME'),
      key: readRegister(need(a, 'NFTA_DYNSET_SREG_KEY'), 'NFTA_DYNSET_SREG_KEY'),
      ...(a.NFTA_DYNSET_SREG_DATA !== undefined && {
        data: readRegister(a.NFTA_DYNSET_SREG_DATA, 'NFTA_DYNSET_SREG_DATA'),
      }),
      ...nonZero('timeoutMs', readOptional64(a.NFTA_DYNSET_TIMEOUT, 'NFTA_DYNSET_TIMEOUT')),
      ...(expressions && { expressions }),
    };
  },
  reject(data) {
    const a = SETS.reject.decode(data);
    const type = names.REJECT_TYPES.name(need(a, 'NFTA_REJECT_TYPE'));
    if (!type) return undefined;
    if (type === 'tcp-reset') return { kind: 'reject', type };
    return { kind: 'reject', type, code: need(a, 'NFTA_REJECT_ICMP_CODE') };
  },
  counter(data) {
    const a = SETS.counter.decode(data);
    const { NFTA_COUNTER_PACKETS: packets, NFTA_COUNTER_BYTES: bytes } = a;
    return {
      kind: 'counter',
      ...(packets && { packets: readBe64(packets, 'NFTA_COUNTER_PACKETS') }),
      ...(bytes && { bytes: readBe64(bytes, 'NFTA_COUNTER_BYTES') }),
    };
  },
  limit(data) {
    const a = SETS.limit.decode(data);
    const rate = readOptional64(need(a, 'NFTA_LIMIT_RATE'), 'NFTA_LIMIT_RATE')!;
    const unit = names.LIMIT_UNITS.name(readOptional64(need(a, 'NFTA_LIMIT_UNIT'), 'NFTA_LIMIT_UNIT')!);
    const of = names.LIMIT_TYPES.name(a.NFTA_LIMIT_TYPE ?? 0);
    if (!unit || !of) return undefined;
    const invert = ((a.NFTA_LIMIT_FLAGS ?? 0) & NFT_LIMIT_F_INV) !== 0;
    return { kind: 'limit', rate, unit, burst: a.NFTA_LIMIT_BURST ?? 0, of, ...(invert && { invert }) };
  },
  notrack: () => ({ kind: 'notrack' }),
  log(data) {
    const a = SETS.log.decode(data);
    // With a flag set, more is written into the log than the model can say.
    if ((a.NFTA_LOG_FLAGS ?? 0) !== 0) return undefined;
    return {
      kind: 'log',
      ...(a.NFTA_LOG_PREFIX !== undefined && { prefix: a.NFTA_LOG_PREFIX }),
      ...(a.NFTA_LOG_LEVEL !== undefined && { level: a.NFTA_LOG_LEVEL }),
      ...(a.NFTA_LOG_GROUP !== undefined && { group: a.NFTA_LOG_GROUP }),
      ...nonZero('snapLength', a.NFTA_LOG_SNAPLEN),
    };
  },
  objref(data) {
    const a = SETS.objref.decode(data);
    if (a.NFTA_OBJREF_IMM_TYPE !== NFT_OBJECT_COUNTER) return undefined;
    return { kind: 'objref', type: 'counter', name: need(a, 'NFTA_OBJREF_IMM_NAME') };
  },
  match(data) {
    const a = SETS.match.decode(data);
    return {
      kind: 'match',
      name: need(a, 'NFTA_MATCH_NAME'),
      revision: need(a, 'NFTA_MATCH_REV'),
      info: need(a, 'NFTA_MATCH_INFO'),
    };
  },
  target(data) {
    const a = SETS.target.decode(data);
    return {
      kind: 'target',
      name: need(a, 'NFTA_TARGET_NAME'),
      revision: need(a, 'NFTA_TARGET_REV'),
      info: need(a, 'NFTA_TARGET_INFO'),
    };
  },
};

/** Decodes a list of expressions; what the model does not have becomes `unknown`. Throws ERR_NETLINK_DECODE. */
export function decodeExpressions(list: Uint8Array): Expression[] {
  return [...readAttributes(list, 0, 'a list of expressions')].map(({ value }) => decodeExpression(value));
}

/** Decodes one, as `decodeExpressions`. */
export function decodeExpression(bytes: Uint8Array): Expression {
  const attributes = NFTA_EXPR.decode(bytes);
  const name = need(attributes, 'NFTA_EXPR_NAME');
  // `notrack` has no data.
  const data = attributes.NFTA_EXPR_DATA ?? new Uint8Array();
  const decoder = Object.hasOwn(DECODERS, name) ? DECODERS[name as keyof typeof SETS] : undefined;
  return decoder?.(data) ?? { kind: 'unknown', name, data };
}

/** The kernel reports the end of every range; one that is its beginning was not asked for. */
function range<A extends string, B extends string>(
  first: A,
  last: B,
  min: number | undefined,
  max: number | undefined,
): { readonly [K in A | B]?: number } {
  if (min === undefined) return {};
  const registers: Record<string, number> = { [first]: readRegister(min, `register of the ${first}`) };
  if (max !== undefined && max !== min) registers[last] = readRegister(max, `register of the last ${first}`);
  return registers as { readonly [K in A | B]?: number };
}

function natFlags(bits: number | undefined) {
  const flags = names.NAT_FLAGS.names(bits ?? 0);
  return flags.length > 0 ? { flags } : {};
}

function nonZero<N extends string>(name: N, value: number | undefined): { readonly [K in N]?: number } {
  return (value === undefined || value === 0 ? {} : { [name]: value }) as { readonly [K in N]?: number };
}
