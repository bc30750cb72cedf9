import { compareText } from '../../../core/index.ts';
import { FIB_FLAGS, NAT_FLAGS } from '../names.ts';
import type { Expression } from './expression.ts';

/**
 * Whether two rules do the same, one of which may have been read back from the kernel: what a counter has counted does not
 * matter, nor do defaults that one of them spells out.
 */
export function sameExpressions(a: readonly Expression[], b: readonly Expression[]): boolean {
  return (
    a.length === b.length && a.every((expression, index) => expressionKey(expression) === expressionKey(b[index]!))
  );
}

/** A text that is the same for expressions that do the same, in the sense of `sameExpressions`. */
export function expressionKey(expression: Expression): string {
  const facts = Object.entries(normalise(expression))
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => compareText(a, b))
    .map(([name, value]) => `${name}=${text(value)}`);
  return facts.join(' ');
}

/** The kernel's defaults, and nothing that changes by itself. */
function normalise(expression: Expression): Expression {
  switch (expression.kind) {
    case 'counter':
      return { kind: 'counter' };
    case 'numgen':
    case 'jhash':
      return { ...expression, offset: expression.offset || undefined };
    case 'log':
      // Without a group the kernel logs with a level: warning.
      return { ...expression, level: expression.group === undefined ? (expression.level ?? 4) : undefined };
    case 'nat':
    case 'masquerade':
    case 'redirect':
      return {
        ...expression,
        flags: NAT_FLAGS.bits(expression.flags) === 0 ? undefined : NAT_FLAGS.names(NAT_FLAGS.bits(expression.flags)),
        ...('address' in expression && expression.addressMax === expression.address && { addressMax: undefined }),
        ...(expression.portMax === expression.port && { portMax: undefined }),
      };
    case 'fib':
      return {
        ...expression,
        flags: FIB_FLAGS.names(FIB_FLAGS.bits(expression.flags)),
        present: expression.present || undefined,
      };
    case 'lookup':
      // By its number a set is known to one transaction only.
      return { ...expression, setId: undefined, invert: expression.invert || undefined };
    case 'dynset':
      return {
        ...expression,
        setId: undefined,
        expressions: expression.expressions?.length ? expression.expressions : undefined,
      };
    case 'limit':
      return { ...expression, invert: expression.invert || undefined };
    case 'payload-set':
      return { ...expression, pseudoHeader: expression.pseudoHeader || undefined };
    default:
      return expression;
  }
}

function text(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.length).toString('hex');
  if (Array.isArray(value))
    return `[${value.map((item) => (isExpression(item) ? expressionKey(item) : String(item))).join(',')}]`;
  if (typeof value === 'object' && value !== null) return JSON.stringify(value);
  return String(value);
}

function isExpression(value: unknown): value is Expression {
  return typeof value === 'object' && value !== null && 'kind' in value;
}
