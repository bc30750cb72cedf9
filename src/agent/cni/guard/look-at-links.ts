import { loadLinkDrift } from '../../../cni/index.ts';
import { type Drift, errorText } from '../../../core/index.ts';
import { isMadeHere, journalEntries } from '../../../ipam/index.ts';
import { withNetlink } from '../../../netlink/index.ts';
import { NETLINK_ROUTE } from '../../../netlink/uapi/index.ts';
import { damagedNoteDrifts } from './damaged-notes.ts';

/** Directories of reservations, with the notes about the attachments whose interfaces are to be looked at. */
export interface LinkTask {
  readonly links: readonly string[];
  /** Mend what can be mended, in place of telling what differs. */
  readonly repair: boolean;
  /** Nothing in the pods is looked at, and only what pods share is mended. @default false */
  readonly onNode?: boolean;
}

/** What differs, nothing after a repair; or why it cannot be told, or mended. */
export type LinkReport =
  | {
      readonly drifts: readonly Drift[];
      /** Those of them of what pods share, where the node's side alone was looked at. */
      readonly shared?: readonly Drift[];
    }
  | { readonly failure: string };

/** Compares the interfaces of this node's pods with what their ADDs noted, or mends them. Holds up the thread; never rejects. */
export async function lookAtLinks({ links, repair, onNode = false }: LinkTask): Promise<LinkReport> {
  try {
    const { linkDrift, nodeSideDrift, repairLinks, repairShared, wantedLink } = await loadLinkDrift();
    const read = () => notedLinks(links, wantedLink);
    return withNetlink(NETLINK_ROUTE, (host) => {
      if (repair) {
        if (onNode) repairShared(host, read);
        else repairLinks(host, read);
        return { drifts: [] };
      }
      if (!onNode) return { drifts: [...damagedNoteDrifts(links), ...linkDrift(host, read)] };
      const { shared, ofPods } = nodeSideDrift(host, read);
      return { drifts: [...shared, ...ofPods], shared };
    });
  } catch (error) {
    return { failure: errorText(error) };
  }
}

/** The interfaces that are to be there, by the notes in directories of reservations. */
export function notedLinks(
  dataDirs: readonly string[],
  wantedLink: Awaited<ReturnType<typeof loadLinkDrift>>['wantedLink'],
) {
  return dataDirs
    .flatMap(journalEntries)
    .flatMap((entry) => (isMadeHere(entry) ? (wantedLink(entry.network, entry) ?? []) : []));
}
