/** A table of text: columns as wide as what is in them, numbers to the right. No line break at the end. */
export function tableText(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => String(row[column]).length)));
  const cell = (value: string | number, column: number) =>
    typeof value === 'number' ? String(value).padStart(widths[column]!) : value.padEnd(widths[column]!);
  return [head, ...rows].map((row) => row.map(cell).join('  ').trimEnd()).join('\n');
}
