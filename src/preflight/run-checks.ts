import { errorText } from '../core/index.ts';
import type { Check, World } from './check.ts';
import { CHECKS } from './checks.ts';
import { type Finding, type Outcome, unknown } from './finding.ts';

export interface RunOptions {
  /** How long one check may take, in milliseconds. */
  readonly limitMs: number;
  /** @default all */
  readonly checks?: readonly Check[];
}

/**
 * Runs the checks, all at once, and gives their findings in the order of the list. Nothing that a check does ends it: what one
 * throws, or does not tell in time, is its finding.
 */
export async function runChecks(world: World, { limitMs, checks = CHECKS }: RunOptions): Promise<Finding[]> {
  return Promise.all(
    checks.map(async ({ name, look }) => ({ check: name, ...(await within(limitMs, async () => look(world))) })),
  );
}

async function within(limitMs: number, look: () => Promise<Outcome>): Promise<Outcome> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Outcome>((resolve) => {
    timer = setTimeout(() => resolve(unknown(`no answer within ${limitMs / 1000} s`)), limitMs);
  });
  try {
    return await Promise.race([look(), late]);
  } catch (error) {
    return unknown(errorText(error));
  } finally {
    clearTimeout(timer);
  }
}
