import { sameBytes } from '../../../core/index.ts';
import type { NftElement } from '../../../netlink/nftables/index.ts';

/** Whether an element, as read back, is this one; both have the same key. */
export function sameElement(present: NftElement, wanted: NftElement): boolean {
  return (
    sameBytes(present.data, wanted.data) &&
    sameBytes(present.keyEnd, wanted.keyEnd) &&
    present.verdict?.kind === wanted.verdict?.kind &&
    chainOf(present) === chainOf(wanted) &&
    present.comment === wanted.comment
  );
}

function chainOf({ verdict }: NftElement): string | undefined {
  return verdict && 'chain' in verdict ? verdict.chain : undefined;
}
