import { NodeplaneError } from '../../core/index.ts';
import { Netlink } from '../../netlink/index.ts';
import { Nftables, type NftRuleset } from '../../netlink/nftables/index.ts';

/** What is kept open, of the calling thread. */
interface Kept {
  host?: Netlink | undefined;
  ruleset?: Nftables | undefined;
}

let kept: Kept | undefined;

/**
 * From now on the conversations of this thread with the kernel about its own namespace stay open from request to request.
 * For threads that stay in that namespace.
 *
 * Opening them takes a dozen system calls each. Closing one with nf_tables after something was deleted takes 10 to 30 ms:
 * the kernel then waits until nobody can be looking at what was deleted.
 */
export function keepConversations(): void {
  kept ??= {};
}

/** Runs `fn` with a NETLINK_ROUTE conversation about the namespace the calling thread is in. */
export async function withHost<T>(fn: (host: Netlink) => Promise<T>): Promise<T> {
  const host = kept?.host ?? Netlink.openRoute();
  let failure: unknown;
  try {
    return await fn(host);
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    keepOrClose('host', host, failure);
  }
}

/** Runs the synchronous `fn` with the ruleset of the namespace the calling thread is in. */
export function withRuleset<T>(fn: (ruleset: NftRuleset) => T): T {
  const ruleset = kept?.ruleset ?? Nftables.open();
  let failure: unknown;
  try {
    return fn(ruleset);
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    keepOrClose('ruleset', ruleset, failure);
  }
}

function keepOrClose<N extends keyof Kept>(name: N, conversation: NonNullable<Kept[N]>, failure: unknown): void {
  const keep = kept !== undefined && !isBroken(failure);
  if (kept) kept[name] = keep ? conversation : undefined;
  if (!keep) conversation.close();
}

/** Of a refused request the answer was read; after other errors there may be answers left that belong to no request. */
function isBroken(error: unknown): boolean {
  return error instanceof NodeplaneError && /^ERR_NETLINK_(SOCKET|DECODE)$/.test(error.code);
}
