/** How long a connection may take where all are to succeed: a busy machine is no reason to say that one failed. */
export const CONNECT_LIMIT_MS = 30_000;

/** Something the demo showed was not true. The message is the claim with what was found instead. */
export class ClaimFailed extends Error {
  constructor(claim: string, found: string) {
    super(`Not true: ${claim}; found ${found}`);
    this.name = 'ClaimFailed';
  }
}

/**
 * Checks one thing the demo says.
 *
 * @param claim the sentence that must hold
 * @param found what there was, shown when it does not
 * @throws ClaimFailed
 */
export function claim(holds: boolean, claim: string, found: unknown): void {
  if (!holds) throw new ClaimFailed(claim, typeof found === 'string' ? found : JSON.stringify(found));
}
