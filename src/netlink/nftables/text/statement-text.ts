import type { LimitExpression, LogExpression, RejectExpression, UnknownExpression } from '../expression/expression.ts';
import type { NftFamily } from '../object/model.ts';
import { hexText } from './value-text.ts';

/** ICMP_*_UNREACH, ICMPV6_* and NFT_REJECT_ICMPX_* codes with the names of `nft`. */
const REJECT_CODES = {
  ip: ['net', 'host', 'prot', 'port'].map((what) => `${what}-unreachable`),
  ip6: [
    'no-route',
    'admin-prohibited',
    undefined,
    'addr-unreachable',
    'port-unreachable',
    'policy-fail',
    'reject-route',
  ],
  any: ['no-route', 'port-unreachable', 'host-unreachable', 'admin-prohibited'],
} as const;

/**
 * `reject`, `reject with icmp host-unreachable`.
 *
 * @param network the protocol of the network header, where it is known
 */
export function rejectText(expression: RejectExpression, family: NftFamily, network: 'ip' | 'ip6' | undefined): string {
  if (expression.type === 'tcp-reset') return 'reject with tcp reset';
  if (expression.type === 'icmpx') {
    const isDefault = expression.code === 1 && (family === 'inet' || family === 'bridge');
    return isDefault ? 'reject' : `reject with icmpx ${REJECT_CODES.any[expression.code] ?? expression.code}`;
  }
  const code = REJECT_CODES[network ?? 'ip'][expression.code] ?? String(expression.code);
  if (code === 'port-unreachable' && family === network) return 'reject';
  return `reject with ${network === 'ip6' ? 'icmpv6' : 'icmp'} ${code}`;
}

/** What `nft` takes for packets when nothing is said. */
const DEFAULT_BURST = 5;

/** `limit rate over 10/minute burst 7 packets` */
export function limitText({ rate, unit, burst, of, invert }: LimitExpression): string {
  const amount = of === 'bytes' ? `${rate} bytes` : String(rate);
  const begin = `limit rate ${invert ? 'over ' : ''}${amount}/${unit}`;
  if (of === 'packets') return burst === DEFAULT_BURST ? begin : `${begin} burst ${burst} packets`;
  return burst === 0 ? begin : `${begin} burst ${burst} bytes`;
}

/** Syslog levels by the names of `nft`. */
const LOG_LEVELS = ['emerg', 'alert', 'crit', 'err', 'warn', 'notice', 'info', 'debug'];
const WARNING = 4;

/** `log prefix "dropped: " level info` */
export function logText({ prefix, level, group, snapLength }: LogExpression): string {
  const parts = ['log'];
  if (prefix !== undefined) parts.push(`prefix "${prefix}"`);
  if (group !== undefined) parts.push(`group ${group}`);
  else if (level !== undefined && level !== WARNING) parts.push(`level ${LOG_LEVELS[level] ?? level}`);
  if (snapLength !== undefined) parts.push(`snaplen ${snapLength}`);
  return parts.join(' ');
}

/** An expression that is nothing of ours: `[osf 0x…]`. */
export function expressionFields({ name, data }: UnknownExpression): string {
  return `[${name}${data.length === 0 ? '' : ` ${hexText(data)}`}]`;
}
