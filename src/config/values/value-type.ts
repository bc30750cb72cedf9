/** What JSON can say: the form of values in the configuration file. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/**
 * One kind of value, in its two outer forms: a node of the configuration file, and the text of a flag. The readers return
 * undefined for anything they do not accept and never throw.
 */
export interface ValueType<T> {
  /** Stands for the value in the help: `duration`. */
  readonly placeholder: string;
  /** What is accepted, for messages: `a duration such as 500ms or 1m30s`. */
  readonly expected: string;
  /** What kube-proxy (a Go program) holds in a field of this type that nobody set. */
  readonly zero: T;
  isZero(value: T): boolean;
  /** Reads what YAML or JSON made of the field; null never gets here, it counts as missing. */
  fromFile(raw: unknown): T | undefined;
  toFile(value: T): Json;
  fromFlag(text: string): T | undefined;
  /** As the flag would be written; also what the `FLAG:` log lines show. */
  toFlag(value: T): string;
  /** What a flag given again does; without it the last one wins. */
  join?(earlier: T, later: T): T;
}
