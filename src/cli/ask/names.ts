/** The commands that ask about a node that runs. */
export const ASK_NAMES = ['status', 'services', 'explain', 'routes', 'trace', 'diff'] as const;

/** Whether a command line, as process.argv has it, is of one of these commands. */
export function isAsked([, , command]: readonly string[]): boolean {
  return ASK_NAMES.some((name) => name === command);
}
