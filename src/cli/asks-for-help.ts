/** Whether help is asked for behind what commander passes on to a command that reads its words itself. */
export function asksForHelp(words: readonly string[]): boolean {
  return words.some((word) => word === '-h' || word === '--help');
}
