/** What of an object's kind was changed by a transaction, and how often: `12 rules in chain ip filter FORWARD`. */
export interface CommitChange {
  readonly verb: 'added' | 'removed';
  readonly object: 'table' | 'chain' | 'rule' | 'set' | 'elements' | 'object' | 'flowtable';
  /** `inet`, `ip`, …; the number of a family that has no name here. */
  readonly family: string;
  readonly table: string;
  /** Of the chain, set or object; of rules and elements, where they are. Undefined for tables. */
  readonly name: string | undefined;
  /** Messages of the kernel that were alike. */
  readonly count: number;
}

/** A transaction of nf_tables that somebody else made. */
export interface NftCommit {
  /** The ruleset's generation after it. */
  readonly generation: number;
  /** The thread that made it, by its number outside all containers; 0: the kernel itself, as when an owner's socket was closed. */
  readonly processId: number;
  /** Its name, cut to 15 bytes by the kernel. */
  readonly processName: string;
  /** The first kinds of change, in the order of the kernel's messages; more than a bound are left out. */
  readonly changes: readonly CommitChange[];
  /** All messages of it, also those of kinds left out. */
  readonly total: number;
}
