/** Columns as wide as what is in them, two spaces between; those named in `right` end at the same place, as numbers do. */
export function tableLines(rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    rows.reduce((most, cells) => Math.max(most, cells[column]!.length), 0),
  );
  return rows.map((cells) =>
    cells
      .map((cell, column) => (right.includes(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join('  ')
      .trimEnd(),
  );
}
