import type { Clock } from '../../core/index.ts';
import type { CommitChange, NftCommit } from '../../netlink/nftables/index.ts';
import { isProbeTable } from '../../proxy/nftables/index.ts';
import { TRACE_TABLE } from '../trace/trace-table.ts';

/** Enough for what happened around a fault; a program that does the same again takes no more room. */
export const RULE_CHANGES_KEPT = 32;

/** Somebody else changed nf_tables (which iptables-nft writes too). */
export interface RuleChange {
  /** By the clock's `now`, the last time. */
  readonly at: number;
  /** As the kernel knows it, at most 15 bytes: `firewalld`, `iptables-nft-re`; a live trace of ours, `node` to the kernel, by its name. */
  readonly program: string;
  /** Outside all containers; 0: the kernel itself. */
  readonly pid: number;
  /** `removed chain inet firewalld filter_FORWARD, 12 rules in …`. Names are as they came. */
  readonly what: string;
  readonly changes: readonly CommitChange[];
  /** How often this program did this, the last time then. */
  readonly count: number;
}

/** Remembers the last changes that others made to nf_tables, the newest last. */
export class RuleChanges {
  readonly #clock: Clock;
  #kept: RuleChange[] = [];
  #missed = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The newest last. */
  get kept(): readonly RuleChange[] {
    return this.#kept;
  }

  /** How often changes were missed, because they came too fast or during a large one of the agent: who made those is not known. */
  get missed(): number {
    return this.#missed;
  }

  add(commit: NftCommit | 'lost'): void {
    if (commit === 'lost') {
      this.#missed++;
      return;
    }
    const { processName, processId: pid, changes } = commit;
    const isOnlyIn = (isTable: (name: string) => boolean) =>
      changes.length > 0 && changes.every(({ table }) => isTable(table));
    // A start or `nodeplane preflight` asks the kernel what it can do: that changes nothing, and is no other's doing.
    if (isOnlyIn(isProbeTable)) return;
    const program = isOnlyIn((name) => name === TRACE_TABLE) ? 'nodeplane trace' : processName;
    const what = commitText(commit);
    const same = (one: RuleChange) => one.program === program && one.what === what;
    const count = 1 + (this.#kept.find(same)?.count ?? 0);
    const others = this.#kept.filter((one) => !same(one));
    const change = { at: this.#clock.now(), program, pid, what, changes, count };
    this.#kept = [...others, change].slice(-RULE_CHANGES_KEPT);
  }
}

/** Told of a transaction: what it took away first, for that is what breaks connections. */
const KINDS_TOLD = 3;
const RANK: Readonly<Record<CommitChange['object'], number>> = {
  table: 0,
  chain: 1,
  rule: 2,
  set: 3,
  flowtable: 3,
  object: 3,
  elements: 4,
};

/** A transaction in words: `removed table inet firewalld, added 12 rules in ip filter INPUT, and 3 more`. Pure. */
export function commitText({ changes, total }: Pick<NftCommit, 'changes' | 'total'>): string {
  if (changes.length === 0) return 'changed nothing that is told';
  const rank = ({ verb, object }: CommitChange) => RANK[object] * 2 + (verb === 'removed' ? 0 : 1);
  const sorted = [...changes].sort((a, b) => rank(a) - rank(b));
  // A table goes with all that is in it, which the kernel tells as well.
  const tables = new Set(sorted.filter(isWholeTable).map(placeOf));
  const told = sorted.filter((one) => isWholeTable(one) || !tables.has(placeOf(one))).slice(0, KINDS_TOLD);
  const covered = new Set(told.filter(isWholeTable).map(placeOf));
  const rest = total - sorted.filter((one) => told.includes(one) || covered.has(placeOf(one))).reduce(sum, 0);
  return [...told.map(changeText), ...(rest > 0 ? [`and ${rest} more`] : [])].join(', ');
}

const isWholeTable = ({ verb, object }: CommitChange) => verb === 'removed' && object === 'table';
const placeOf = ({ verb, family, table }: CommitChange) => `${verb} ${family} ${table}`;
const sum = (before: number, { count }: CommitChange) => before + count;

function changeText({ verb, object, family, table, name, count }: CommitChange): string {
  const place = [family, table, name].filter((word) => word !== undefined).join(' ');
  if (object === 'rule') return `${verb} ${count === 1 ? 'a rule' : `${count} rules`} in ${place}`;
  if (object === 'elements') return `${verb} elements of ${place}`;
  return `${verb} ${object} ${place}`;
}
