/** How the names of all tables begin that this program writes. */
const OWN_TABLES = 'nodeplane';

/** Whether this program writes the table, in whatever mode. */
export function isOwnTable(table: string): boolean {
  return table.startsWith(OWN_TABLES);
}
