import { attempt } from '../../../core/index.ts';
import { netnsIdentity } from '../../../sys/index.ts';
// While anybody listens, the kernel makes a message of 4 KiB for each object of a transaction, whatever the listeners' filters drop,
// and keeps all of them until its end (nf_tables_setelem_notify): a second or two for 120,000 elements that take 0.3 to 0.4 s
// without. So the listeners of this thread leave their group for as long as a large transaction takes. "Anybody" is the
// whole machine, all namespaces (netlink_has_listeners): what other programs listen to costs all the same. Rules that iptables-nft
// writes are told in the same way.

/** Listens to the ruleset of a network namespace. */
export interface RulesetListener {
  leave(): void;
  rejoin(): void;
  /** Told after `rejoin`, when there were transactions meanwhile: the last one's number if this process made them all. */
  missed(what: { readonly own: number } | 'by others'): void;
}

/** Since when a listener is away, for how many transactions. */
interface Absence {
  transactions: number;
  readonly generation: number;
  readonly ownCommits: number;
}

const listeners = new Map<RulesetListener, string>();
const absences = new Map<RulesetListener, Absence>();
/** How many transactions the threads of this process have made. */
let commits = new Int32Array(new SharedArrayBuffer(4));

/** What identifies the network namespace of the calling thread. */
export function rulesetHere(): string {
  return netnsIdentity('/proc/thread-self/ns/net');
}

/** Adds a listener to the ruleset of the calling thread's namespace, until the function returned is called. */
export function addListener(listener: RulesetListener): () => void {
  listeners.set(listener, rulesetHere());
  return () => {
    listeners.delete(listener);
    absences.delete(listener);
  };
}

/** After each transaction of this process: one that listeners did not hear of is nobody else's. */
export function countOwnCommit(): void {
  Atomics.add(commits, 0, 1);
}

/** The memory in which threads of this process count their transactions together. */
export function ownCommits(): SharedArrayBuffer {
  return commits.buffer;
}

/** Has this thread count in the memory of another one. */
export function shareOwnCommits(memory: SharedArrayBuffer): void {
  commits = new Int32Array(memory);
}

/**
 * Makes a transaction that no listener of this thread hears. Each is told afterwards what it has missed, which the generations say:
 * what others did in between is known to have happened, but not what it was.
 *
 * @param ruleset which listeners, by `rulesetHere`
 * @param generation asks for the ruleset's generation
 */
export async function unheard<T>(ruleset: string, generation: () => number, commit: () => Promise<T>): Promise<T> {
  const here = [...listeners].filter(([, where]) => where === ruleset).map(([listener]) => listener);
  if (here.length === 0) return commit();
  // Asked for before they leave and after they are back: what they hear besides is nothing to be afraid of.
  const since = { generation: generation(), ownCommits: Atomics.load(commits, 0) };
  for (const listener of here) leave(listener, since);
  try {
    return await commit();
  } finally {
    for (const listener of here) comeBack(listener, generation);
  }
}

function leave(listener: RulesetListener, since: Omit<Absence, 'transactions'>): void {
  const absence = absences.get(listener);
  if (absence) {
    absence.transactions++;
  } else {
    absences.set(listener, { transactions: 1, ...since });
    listener.leave();
  }
}

function comeBack(listener: RulesetListener, generation: () => number): void {
  const absence = absences.get(listener);
  // Closed meanwhile, or away for another transaction still.
  if (!absence || --absence.transactions > 0) return;
  absences.delete(listener);
  listener.rejoin();
  // Where the kernel cannot be asked any more, the transaction's own outcome is what counts.
  const now = attempt(generation);
  if (now === absence.generation) return;
  const isOwn = now !== undefined && now - absence.generation === Atomics.load(commits, 0) - absence.ownCommits;
  listener.missed(isOwn ? { own: now } : 'by others');
}
