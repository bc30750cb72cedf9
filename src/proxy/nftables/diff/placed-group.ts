import type { NftElement } from '../../../netlink/nftables/index.ts';
import type { Endpoint } from '../../index.ts';
import type { Group } from '../compile/compile.ts';
import { endpointData, indexedKey } from '../compile/keys.ts';

/** A group with its endpoints in their slots. */
export interface PlacedGroup extends Pick<Group, 'set' | 'prefix' | 'lead'> {
  readonly slots: readonly Endpoint[];
}

/** Puts the elements of a placed group behind `elements`. */
export function addGroupElements({ prefix, slots, lead }: PlacedGroup, elements: NftElement[]): void {
  for (let slot = 0; slot < slots.length; slot++) {
    elements.push({ key: indexedKey(prefix, slot), data: slotValue(slots[slot]!, lead) });
  }
}

/** What a slot holds. */
export function slotValue(endpoint: Endpoint, lead: Uint8Array | undefined): Uint8Array {
  const data = endpointData(endpoint);
  return lead ? Buffer.concat([lead, data]) : data;
}
