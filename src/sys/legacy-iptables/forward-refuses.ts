import { type IpFamily, KernelError } from '../../core/index.ts';
import { type LegacyEntry, type LegacyTable, legacyTables, readLegacyTable } from './table.ts';

const NF_INET_FORWARD = 2;
/** NF_DROP as a verdict of the standard target: -NF_DROP - 1. */
const DROP = -1;

/**
 * Whether chain FORWARD of legacy iptables' table filter, in the network namespace of the calling thread, drops or rejects
 * whatever none of its rules has accepted: by its policy, or by a rule for every packet. False where that table is not in
 * use: asking the kernel for one would make it.
 */
export function legacyForwardRefuses(family: IpFamily): boolean {
  if (!legacyTables(family)?.includes('filter')) return false;
  const table = readFilter(family);
  const forward = table?.builtIn[NF_INET_FORWARD];
  if (!table || !forward) return false;
  for (let at = forward.first; at <= forward.policy; ) {
    const entry = table.entry(at);
    if (!entry) return false;
    if (refusesAll(entry)) return true;
    at = entry.next;
  }
  return false;
}

/** Undefined when it keeps changing, or nobody may read it. */
function readFilter(family: IpFamily): LegacyTable | undefined {
  try {
    return readLegacyTable(family, 'filter');
  } catch (error) {
    if (error instanceof KernelError) return undefined;
    throw error;
  }
}

function refusesAll({ comparisons, matches, target }: LegacyEntry): boolean {
  if (matches.length > 0 || comparisons.some((byte) => byte !== 0)) return false;
  return target.name === 'REJECT' || (target.name === '' && target.info.readInt32LE(0) === DROP);
}
