import { fieldAt } from './file/field-path.ts';
import type { FieldPath } from './file/schema.ts';
import { FLAG_NAMES, flagNamed } from './flags/flags.ts';
import type { ValueType } from './values/value-type.ts';

/** One setting that cannot be used. */
export interface ConfigProblem {
  readonly path: FieldPath;
  /** What was found, and what is accepted or what to do; the path is not repeated. */
  readonly message: string;
}

/**
 * Collects what is wrong, so that the user can correct everything at once. The checks return the value all the same: what they
 * return is only looked at when nothing was found.
 */
export class Problems {
  readonly found: ConfigProblem[] = [];

  add(path: FieldPath, message: string): void {
    this.found.push({ path, message });
  }

  inRange(path: FieldPath, value: number, min: number, max: number): number {
    if (!(value >= min && value <= max)) this.add(path, `${value} is not within ${min} and ${max}`);
    return value;
  }

  notNegative(path: FieldPath, value: number): number {
    if (!(value >= 0)) this.add(path, `${shown(path, value)} must not be negative: give ${shown(path, 0)} or more`);
    return value;
  }

  positive(path: FieldPath, value: number): number {
    const usual = shown(path, fieldAt(path).fallback as number);
    if (!(value > 0)) this.add(path, `${shown(path, value)} must be greater than 0: ${usual} is the default`);
    return value;
  }

  oneOf<const C extends string>(path: FieldPath, value: string, choices: readonly C[]): C {
    if (!choices.includes(value as C))
      this.add(path, `"${value}" is none of ${choices.map((c) => `"${c}"`).join(', ')}`);
    return value as C;
  }
}

/** A value of this field as a flag would be written: `1m30s`. */
export function shown(path: FieldPath, value: number): string {
  return (fieldAt(path).type as ValueType<number>).toFlag(value);
}

/**
 * `"/etc/nodeplane.yaml": iptables.masqueradeBit (--iptables-masquerade-bit): 32 is not within 0 and 31`
 *
 * @param file the one that the value is from; undefined: it is from none
 */
export function formatProblem({ path, message }: ConfigProblem, file?: string): string {
  const flag = flagFor(path);
  return `${file === undefined ? '' : `"${file}": `}${path}${flag ? ` (--${flag})` : ''}: ${message}`;
}

/** The flag that sets a field. The periods of nftables are set by the flags of iptables, the mark bit is not. */
export function flagFor(path: FieldPath): string | undefined {
  const named = path === 'nftables.masqueradeBit' ? path : path.replace(/^nftables\./, 'iptables.');
  return FLAG_NAMES.find((name) => flagNamed(name).path === named);
}
