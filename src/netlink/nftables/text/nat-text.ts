import type { MasqueradeExpression, NatExpression, NatFlag, RedirectExpression } from '../expression/nat-expression.ts';
import type { NftFamily } from '../object/model.ts';
import { constantRange, type Registers } from './registers.ts';

/** In the order of `nft`. */
const FLAGS: readonly (readonly [NatFlag, string])[] = [
  ['random', 'random'],
  ['random-fully', 'fully-random'],
  ['persistent', 'persistent'],
  ['netmap', 'netmap'],
];

/** `dnat to 10.1.0.1:8080`, `dnat ip to KEY map @SET`, `masquerade fully-random` */
export function natText(
  expression: NatExpression | MasqueradeExpression | RedirectExpression,
  registers: Registers,
  tableFamily: NftFamily,
): string {
  const parts: string[] = [expression.kind === 'nat' ? expression.type : expression.kind];
  const target = targetText(expression, registers);
  if (expression.kind === 'nat' && (tableFamily === 'inet' || target.isMapped)) parts.push(expression.family);
  if (target.text !== '') parts.push('to', target.text);
  const flags = FLAGS.filter(([flag]) => expression.flags?.includes(flag)).map(([, name]) => name);
  if (flags.length > 0) parts.push(flags.join(','));
  return parts.join(' ');
}

function targetText(
  expression: NatExpression | MasqueradeExpression | RedirectExpression,
  registers: Registers,
): { readonly text: string; readonly isMapped: boolean } {
  const { port, portMax } = expression;
  const [address, addressMax] = 'address' in expression ? [expression.address, expression.addressMax] : [];
  let text = '';
  if (address !== undefined) {
    const first = registers.get(address);
    // The port is in the value of the map too.
    if (first.isMapped) return { text: first.text, isMapped: true };
    const isIpv6 = 'family' in expression && expression.family === 'ip6';
    text = constantRange(first, optional(registers, addressMax), isIpv6 ? 'ipv6_addr' : 'ipv4_addr');
    if (isIpv6 && port !== undefined) text = `[${text.replace('-', ']-[')}]`;
  }
  if (port !== undefined) {
    text += `:${constantRange(registers.get(port), optional(registers, portMax), 'inet_service')}`;
  }
  return { text, isMapped: false };
}

function optional(registers: Registers, register: number | undefined) {
  return register === undefined ? undefined : registers.get(register);
}
