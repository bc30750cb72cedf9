import { isDeepStrictEqual } from 'node:util';
import type { NftElement } from '../../../netlink/nftables/index.ts';
import type { Claim, Entry } from '../compile/compile.ts';
import { keyText } from '../compile/keys.ts';
import { type Edits, pushElement } from './edits.ts';

/** The element of an entry. */
export function entryElement({ key, keyEnd, verdict }: Entry, { comment }: Claim): NftElement {
  return { key, ...(keyEnd && { keyEnd }), ...(verdict && { verdict }), comment };
}

/** Puts what leads from the entries of one claim to those of another into `edits`. */
export function changeEntries(before: Claim | undefined, after: Claim | undefined, edits: Edits): void {
  const old = new Map<string, Entry>();
  for (const entry of before?.entries ?? []) old.set(entryId(entry), entry);
  for (const entry of after?.entries ?? []) {
    const id = entryId(entry);
    const present = old.get(id);
    old.delete(id);
    if (present && before!.comment === after!.comment && isDeepStrictEqual(present.verdict, entry.verdict)) continue;
    if (present) pushElement(edits.removeElements, entry.set, bareElement(entry));
    pushElement(edits.addElements, entry.set, entryElement(entry, after!));
  }
  for (const entry of old.values()) pushElement(edits.removeElements, entry.set, bareElement(entry));
}

function entryId({ set, key, keyEnd }: Entry): string {
  return `${set} ${keyText(key)}${keyEnd ? keyText(keyEnd) : ''}`;
}

function bareElement({ key, keyEnd }: Entry): NftElement {
  return keyEnd ? { key, keyEnd } : { key };
}
