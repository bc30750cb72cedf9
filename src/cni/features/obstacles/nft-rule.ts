import type { IpFamily } from '../../../core/index.ts';
import {
  type Expression,
  hostOrder32,
  interfaceName,
  type NftReader,
  type NftRule,
  type Register,
  type Verdict,
} from '../../../netlink/nftables/index.ts';
import type { ForAll } from '../../../nft/index.ts';
import type { PodPackets } from './packets.ts';

type ElementReader = Pick<NftReader, 'getElement'>;

/** <linux/netfilter/nf_conntrack_common.h>: NF_CT_STATE_BIT(IP_CT_NEW), IPS_DST_NAT. */
const NEW = hostOrder32(1 << 3);
const TRANSLATED = hostOrder32(1 << 5);
/** <linux/netfilter.h> */
const NFPROTO: Record<IpFamily, number> = { IPv4: 2, IPv6: 10 };
/** In the header, by direction. */
const ADDRESS_AT: Record<IpFamily, Record<PodPackets['direction'], number>> = {
  IPv4: { from: 12, to: 16 },
  IPv6: { from: 8, to: 24 },
};

/**
 * What a rule of nf_tables does with all of these packets; undefined: it selects some or none, or lets them go on.
 *
 * @param sets where elements are asked for
 */
export function ruleForPackets(rule: NftRule, packets: PodPackets, sets: ElementReader): ForAll | undefined {
  const values = new Map<Register, Uint8Array>();
  const load = (to: Register, value: Uint8Array | undefined) => {
    // What overlaps it is not known any more; a rule that compares loads what it compares just before.
    values.clear();
    if (value) values.set(to, value);
  };
  for (const expression of rule.expressions) {
    switch (expression.kind) {
      case 'counter':
      case 'objref':
      case 'log':
      case 'meta-set':
      case 'ct-set':
        break;
      case 'payload':
      case 'meta':
      case 'ct':
        load(expression.to, loaded(expression, packets));
        break;
      case 'bitwise': {
        const value = values.get(expression.from);
        load(expression.to, value && masked(value, expression.mask, expression.xor));
        break;
      }
      case 'cmp': {
        const value = values.get(expression.from);
        if (!value || !holds(value, expression)) return undefined;
        break;
      }
      case 'lookup': {
        const key = values.get(expression.from);
        if (!key) return undefined;
        const { family, table } = rule;
        const found = sets.getElement({ kind: 'set', family, table, name: expression.set }, key);
        if ((found === undefined) !== (expression.invert === true)) return undefined;
        if (found?.verdict) return ofVerdict(found.verdict);
        if (typeof expression.to === 'number') load(expression.to, found?.data);
        break;
      }
      case 'reject':
        return { kind: 'refuse' };
      case 'verdict':
        return ofVerdict(expression.verdict);
      case 'target':
        // Of the targets of xtables only this one refuses; LOG, for one, lets packets go on.
        return expression.name === 'REJECT' ? { kind: 'refuse' } : undefined;
      case 'match':
        if (expression.name !== 'comment') return undefined;
        break;
      default:
        return undefined;
    }
  }
  return undefined;
}

function ofVerdict(verdict: Verdict): ForAll | undefined {
  if (verdict.kind === 'drop') return { kind: 'refuse' };
  if (verdict.kind === 'accept' || verdict.kind === 'return') return { kind: verdict.kind };
  return 'chain' in verdict ? { kind: verdict.kind, chain: verdict.chain } : undefined;
}

/** Undefined: not all of the packets have the same, or nobody knows. */
function loaded(
  expression: Extract<Expression, { kind: 'payload' | 'meta' | 'ct' }>,
  { direction, subnet: { address }, link }: PodPackets,
): Uint8Array | undefined {
  if (expression.kind === 'payload') {
    const at = expression.offset - ADDRESS_AT[address.family][direction];
    const end = at + expression.length;
    const isAddress = expression.base === 'network' && at >= 0 && end <= address.bytes.length;
    return isAddress ? address.bytes.subarray(at, end) : undefined;
  }
  if (expression.kind === 'meta') {
    if (expression.key === 'nfproto') return Uint8Array.of(NFPROTO[address.family]);
    const ofLink = direction === 'from' ? 'iifname' : 'oifname';
    return expression.key === ofLink && link !== undefined ? interfaceName(link) : undefined;
  }
  if (expression.key === 'state') return NEW;
  return expression.key === 'status' && direction === 'to' ? TRANSLATED : undefined;
}

function masked(value: Uint8Array, mask: Uint8Array, xor: Uint8Array): Uint8Array {
  return value.map((byte, at) => (byte & (mask[at] ?? 0)) ^ (xor[at] ?? 0));
}

/** Of a name that ends in `*` the bytes before it are compared alone. */
function holds(value: Uint8Array, { op, data }: Extract<Expression, { kind: 'cmp' }>): boolean {
  const order = Buffer.compare(value.subarray(0, data.length), data);
  switch (op) {
    case '==':
      return order === 0;
    case '!=':
      return order !== 0;
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
  }
}
