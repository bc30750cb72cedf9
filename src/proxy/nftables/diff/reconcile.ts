import { isDeepStrictEqual } from 'node:util';
import type { Steps } from '../../../core/index.ts';
import type { NftElement, NftSet } from '../../../netlink/nftables/index.ts';
import { sameBase, sameRuleBodies } from '../../../nft/index.ts';
import type { ChainBody } from '../compile/chain.ts';
import { SETS } from '../compile/names.ts';
import { isAffinity, type SetBody } from '../compile/schema.ts';
import { staleClients } from './affinity.ts';
import { type Edits, emptyEdits, pushElement } from './edits.ts';
import { ElementIndex } from './element-index.ts';
import { isAnonymous, type KernelTable } from './kernel-state.ts';
import type { Wanted } from './layout.ts';
import { sameElement } from './same-element.ts';

/** Fills an empty table. */
export function createAll({ sets, chains, elements }: Wanted): Edits {
  const edits = emptyEdits();
  for (const [name, body] of sets) edits.addSets.set(name, body);
  for (const [name, body] of chains) edits.writeChains.push({ name, body, exists: false });
  for (const [set, list] of elements) edits.fill.set(set, list);
  return edits;
}

/**
 * From what the kernel holds to what is wanted; what is right is left alone.
 *
 * @returns undefined when the table has another shape (made by another version, say) and is better made anew, as
 * one that sleeps is
 */
export function* reconcile(wanted: Wanted, kernel: KernelTable): Steps<Edits | undefined> {
  if (kernel.dormant) return undefined;
  const edits = emptyEdits();
  for (const [name, body] of wanted.sets) {
    yield;
    const present = kernel.sets.get(name);
    if (present && sameSet(present, body)) continue;
    // Only the sets of Service ports come and go.
    if (present && !isAffinity(body)) return undefined;
    if (present) edits.removeSets.add(name);
    edits.addSets.set(name, body);
  }
  for (const [name, set] of kernel.sets) {
    if (!wanted.sets.has(name) && !isAnonymous(set)) edits.removeSets.add(name);
  }
  const usesNewSet = ({ rules }: ChainBody) =>
    rules.some(({ expressions }) => expressions.some((part) => 'set' in part && edits.removeSets.has(part.set)));
  for (const [name, body] of wanted.chains) {
    yield;
    const present = kernel.chains.get(name);
    if (present && !sameBase(present.base, body.base)) return undefined;
    if (present && sameRuleBodies(kernel.rules.get(name) ?? [], body.rules) && !usesNewSet(body)) continue;
    edits.writeChains.push({ name, body, exists: present !== undefined });
  }
  for (const name of kernel.chains.keys()) if (!wanted.chains.has(name)) edits.removeChains.push(name);
  for (const [name, body] of wanted.sets) {
    if (isAffinity(body)) continue;
    const present = kernel.elements.get(name) ?? [];
    const index = kernel.indexes.get(name) ?? new ElementIndex(present);
    yield* compareElements(name, wanted.elements.get(name) ?? [], present, index, edits);
  }
  const fixed = new Set<string>(Object.values(SETS));
  const endpointsLeft = [...edits.removeElements.keys()].some((set) => !fixed.has(set));
  for (const [name, values] of wanted.affinities) {
    yield;
    const clients = kernel.elements.get(name) ?? [];
    if (endpointsLeft || edits.addSets.has(name) || staleClients(clients, values).length > 0) {
      edits.affinities.set(name, values);
    }
  }
  return edits;
}

function* compareElements(
  set: string,
  wanted: Iterable<NftElement>,
  present: readonly NftElement[],
  index: ElementIndex,
  edits: Edits,
): Steps<void> {
  const seen = new Uint8Array(present.length);
  for (const element of wanted) {
    yield;
    const at = index.find(element);
    const found = present[at];
    if (found) seen[at] = 1;
    if (found && sameElement(found, element)) continue;
    if (found) pushElement(edits.removeElements, set, bare(found));
    pushElement(edits.addElements, set, element);
  }
  for (const [at, element] of present.entries()) {
    if (seen[at] === 0) pushElement(edits.removeElements, set, bare(element));
  }
}

/** What an element is deleted by. */
function bare({ key, keyEnd, catchAll, intervalEnd }: NftElement): NftElement {
  return { key, ...(keyEnd && { keyEnd }), ...(catchAll && { catchAll }), ...(intervalEnd && { intervalEnd }) };
}

function sameSet(present: NftSet, { key, data, flags = [], size, timeoutMs }: SetBody): boolean {
  return (
    isDeepStrictEqual(present.key, key) &&
    isDeepStrictEqual(present.data, data) &&
    isDeepStrictEqual([...(present.flags ?? [])].sort(), [...flags].sort()) &&
    present.size === size &&
    present.timeoutMs === timeoutMs
  );
}
