import { sameBytes } from '../../../core/index.ts';
import type { Endpoint } from '../../index.ts';
import type { Group } from '../compile/compile.ts';
import { indexedKey, keyText } from '../compile/keys.ts';
import { assignSlots } from '../compile/slots.ts';
import { type Edits, pushElement } from './edits.ts';
import { type PlacedGroup, slotValue } from './placed-group.ts';

/** The values in the first `count` slots of a group in the kernel; undefined where there is nothing. */
export type SlotHints = (
  set: string,
  prefix: Uint8Array,
  count: number,
) => readonly (Uint8Array | undefined)[] | undefined;

/**
 * Puts groups into slots with as few changes as possible.
 *
 * @param before as they were placed; of the same prefix as `wanted`
 * @param edits get the elements that change; undefined: nobody needs to know
 * @param hints for groups that were not placed before
 */
export function placeGroups(
  before: readonly PlacedGroup[],
  wanted: readonly Group[],
  edits: Edits | undefined,
  hints?: SlotHints,
): PlacedGroup[] {
  const placed = wanted.map((group) => {
    const old = before.find(({ set }) => set === group.set);
    const slots = old ? keepSlots(old.slots, group.endpoints) : takeHint(group, hints);
    const { set, prefix, lead } = group;
    return lead ? { set, prefix, lead, slots } : { set, prefix, slots };
  });
  if (!edits) return placed;
  for (const group of placed) {
    changeSlots(group, before.find(({ set }) => set === group.set)?.slots ?? [], group.slots, edits);
  }
  for (const group of before) {
    if (!placed.some(({ set }) => set === group.set)) changeSlots(group, group.slots, [], edits);
  }
  return placed;
}

function keepSlots(before: readonly Endpoint[], wanted: readonly Endpoint[]): readonly Endpoint[] {
  return assignSlots(
    before.map(({ key }) => key),
    wanted,
    ({ key }) => key,
  );
}

function takeHint({ set, prefix, lead, endpoints }: Group, hints: SlotHints | undefined): readonly Endpoint[] {
  const hint = hints?.(set, prefix, endpoints.length);
  // As a first sync puts them: nothing to think about.
  if (!hint || hint.every((value, slot) => sameBytes(value, slotValue(endpoints[slot]!, lead)))) return endpoints;
  return assignSlots(
    hint.map((value) => value && keyText(value)),
    endpoints,
    (endpoint) => keyText(slotValue(endpoint, lead)),
  );
}

function changeSlots(
  { set, prefix, lead }: PlacedGroup,
  before: readonly Endpoint[],
  after: readonly Endpoint[],
  edits: Edits,
): void {
  for (let slot = 0; slot < Math.max(before.length, after.length); slot++) {
    const [old, now] = [before[slot], after[slot]];
    if (old?.key === now?.key) continue;
    const key = indexedKey(prefix, slot);
    if (old) pushElement(edits.removeElements, set, { key });
    if (now) pushElement(edits.addElements, set, { key, data: slotValue(now, lead) });
  }
}
