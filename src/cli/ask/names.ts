/** The commands that ask about a node that runs. */
export const ASK_NAMES = ['status', 'services', 'explain', 'routes', 'trace', 'diff'] as const;
