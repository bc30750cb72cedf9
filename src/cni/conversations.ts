import { NodeplaneError } from '../core/index.ts';
import { Netlink, Nftables, type NftRuleset } from '../netlink/index.ts';

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
  let keep = false;
  try {
    const result = await fn(host);
    keep = true;
    return result;
  } catch (error) {
    keep = !isBroken(error);
    throw error;
  } finally {
    if (!kept || !keep) host.close();
    if (kept) kept.host = keep ? host : undefined;
  }
}

/** Runs the synchronous `fn` with the ruleset of the namespace the calling thread is in. */
export function withRuleset<T>(fn: (ruleset: NftRuleset) => T): T {
  const ruleset = kept?.ruleset ?? Nftables.open();
  let keep = false;
  try {
    const result = fn(ruleset);
    keep = true;
    return result;
  } catch (error) {
    keep = !isBroken(error);
    throw error;
  } finally {
    if (!kept || !keep) ruleset.close();
    if (kept) kept.ruleset = keep ? ruleset : undefined;
  }
}

/** Of a refused request the answer was read; after other errors there may be answers left that belong to no request. */
function isBroken(error: unknown): boolean {
  return error instanceof NodeplaneError && /^ERR_NETLINK_(SOCKET|DECODE)$/.test(error.code);
}
