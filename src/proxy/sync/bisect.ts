import type { LeftOutPort } from './dataplane.ts';
import type { LeftOut } from './left-out.ts';

/** How long a search may go on. What is not tried until then is left out, and tried first at the next full sync. */
export interface TrialBounds {
  /** Enough to find three culprits among ten thousand ports. */
  readonly probes: number;
  /** Nothing else is programmed meanwhile. */
  readonly milliseconds: number;
}

const BOUNDS: TrialBounds = { probes: 96, milliseconds: 10_000 };
const UNTRIED = 'it is among ports the kernel refuses, and there was no time to try each: it is tried again soon';

/**
 * Finds the Service ports that are to blame when the kernel refuses a transaction without naming one of them. They are tried
 * out within bounds, so that the syncs end: all of them, then the halves of each group that is refused.
 *
 * Those the last search left out come last, and among them those that were refused by themselves: so that ports in order
 * cost one probe however many are not, and one search goes on where the one before it ended.
 *
 * @param suspects keys of ports
 * @param before what the last search left out, by key
 * @param refuses asks about a group, without changing what is in force; the reason, undefined when it is accepted
 * @returns the ports to leave out, by key; those that are only suspected say so (`untried`)
 */
export async function bisect(
  suspects: readonly string[],
  before: LeftOut,
  nameOf: (key: string) => string,
  refuses: (group: readonly string[]) => Promise<string | undefined>,
  bounds: TrialBounds = BOUNDS,
): Promise<Map<string, LeftOutPort>> {
  const leftOut = new Map<string, LeftOutPort>();
  const deadline = performance.now() + bounds.milliseconds;
  let probes = 0;
  const search = async (group: readonly string[]): Promise<void> => {
    if (group.length === 0) return;
    if (probes >= bounds.probes || performance.now() > deadline) {
      for (const key of group) {
        const known = before.get(key);
        leftOut.set(key, known && !known.untried ? known : untried(key, nameOf(key)));
      }
      return;
    }
    probes++;
    const reason = await refuses(group);
    if (reason === undefined) return;
    if (group.length === 1) {
      const key = group[0]!;
      leftOut.set(key, { key, name: nameOf(key), reason });
      return;
    }
    const middle = group.length >> 1;
    await search(group.slice(0, middle));
    await search(group.slice(middle));
  };
  await search(suspects.filter((key) => !before.has(key)));
  await search(suspects.filter((key) => before.get(key)?.untried));
  await search(suspects.filter((key) => before.has(key) && !before.get(key)?.untried));
  return leftOut;
}

function untried(key: string, name: string): LeftOutPort {
  return { key, name, reason: UNTRIED, untried: true };
}
