import { type NftElement, type NftSet, typeLength } from '../../netlink/nftables/index.ts';
import type { KnownBytes } from '../packet/index.ts';
import type { Rules } from './surroundings.ts';

/** What a lookup finds: an element, none, or nobody can tell. */
export type Found =
  | { readonly kind: 'found'; readonly element: NftElement | undefined }
  /** `length` bytes of the key were asked for, and are not all known. */
  | { readonly kind: 'cannot tell'; readonly length: number };

/**
 * Looks a key up; the kernel finds the element, ranges and catch-all included.
 *
 * @param read the first bytes of the registers of the key
 */
export function findElement(
  set: NftSet,
  read: (length: number) => KnownBytes,
  rules: Pick<Rules, 'getElement'>,
): Found {
  // Programs other than `nft` need not say what a key is made of, and then its length is not known here.
  if (set.key.length === 0 || set.key.includes('unknown')) return { kind: 'cannot tell', length: 4 };
  const key = read(typeLength(set.key));
  if (!key.isKnown) return { kind: 'cannot tell', length: key.length };
  return { kind: 'found', element: rules.getElement(set, key.bytes) };
}
