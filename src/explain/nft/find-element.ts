import { type DatatypeName, type NftElement, type NftSet, typeLength } from '../../netlink/nftables/index.ts';
import type { KnownBytes } from '../packet/index.ts';

/** What a lookup finds: an element, none, or nobody can tell. */
export type Found =
  | { readonly kind: 'found'; readonly element: NftElement | undefined }
  /** `length` bytes of the key were asked for, and are not all known. */
  | { readonly kind: 'cannot tell'; readonly length: number };

/**
 * Looks a key up.
 *
 * @param read the first bytes of the registers of the key
 * @param ask what has this key, ranges and catch-all included; undefined where that is not known
 */
export function findElement(
  set: NftSet,
  read: (length: number) => KnownBytes,
  ask: (key: Uint8Array) => NftElement | 'none' | undefined,
): Found {
  const length = keyLength(set);
  if (length === undefined) return { kind: 'cannot tell', length: 4 };
  const key = read(length);
  const element = key.isKnown ? ask(key.bytes) : undefined;
  if (element === undefined) return { kind: 'cannot tell', length };
  return { kind: 'found', element: element === 'none' ? undefined : element };
}

/** How long the keys of a set are; undefined where that is not known. */
export function keyLength(set: NftSet): number | undefined {
  return set.keyLength ?? lengthOf(set.key);
}

/** How long the values of a map are; undefined where that is not known, or where they are verdicts. */
export function dataLength({ data, dataLength }: NftSet): number | undefined {
  return dataLength ?? (Array.isArray(data) ? lengthOf(data) : undefined);
}

function lengthOf(fields: readonly DatatypeName[]): number | undefined {
  return fields.length === 0 || fields.includes('unknown') ? undefined : typeLength(fields);
}
