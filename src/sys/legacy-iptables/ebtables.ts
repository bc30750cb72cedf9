import { readFileSync } from 'node:fs';

/** `ebtable_filter 16384 1 - Live 0x0`: the name of the table, and how often its module is held. */
const MODULE = /^ebtable_(\w+) \d+ (\d+) /gm;

/**
 * The tables of legacy ebtables that have a rule, in whatever network namespace. A table holds its module while it has rules
 * (do_replace_finish, net/bridge/netfilter/ebtables.c). There is no list of tables, and to read one makes it where it is not in use yet
 * (find_inlist_lock_noload of the same, since Linux 5.15). A policy without a rule does not show.
 */
export function ebtablesWithRules(): string[] {
  try {
    const modules = readFileSync('/proc/modules', 'utf8');
    return [...modules.matchAll(MODULE)].flatMap(([, table, held]) => (held === '0' ? [] : [table!]));
  } catch {
    // A kernel without modules, or one that is hidden.
    return [];
  }
}
