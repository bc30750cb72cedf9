let last: Promise<unknown> = Promise.resolve();

/**
 * Runs `work` when what was given before has ended, however it ended, and settles as it does. Both families read the one
 * ruleset of the node and commit to it: side by side, the commit of the first would make what the second has read stale
 * (ERESTART), and all its work would be done again.
 */
export function oneAtATime<T>(work: () => Promise<T>): Promise<T> {
  const result = last.then(work);
  last = result.catch(() => {});
  return result;
}
