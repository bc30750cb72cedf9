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
  const answer = refusalText(expression, network);
  const isDefault =
    expression.type === 'icmpx'
      ? family === 'inet' || family === 'bridge'
      : expression.type === 'icmp' && family === network;
  return isDefault && answer.endsWith(' port-unreachable') ? 'reject' : `reject with ${answer}`;
}

/**
 * What is sent to whom a rule refuses, in the words of `nft`: `icmpv6 port-unreachable`.
 *
 * @param network as for `rejectText`
 */
export function refusalText(expression: RejectExpression, network: 'ip' | 'ip6' | undefined): string {
  if (expression.type === 'tcp-reset') return 'tcp reset';
  const { type, code } = expression;
  if (type === 'icmpx') return `icmpx ${REJECT_CODES.any[code] ?? code}`;
  return `${network === 'ip6' ? 'icmpv6' : 'icmp'} ${REJECT_CODES[network ?? 'ip'][code] ?? code}`;
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
