import { NodeplaneError } from '../../core/index.ts';
import { Netlink } from '../../netlink/index.ts';
import { Nftables, type NftRuleset } from '../../netlink/nftables/index.ts';

/** The sockets of the calling thread that stay open. */
interface OpenSockets {
  host?: Netlink | undefined;
  ruleset?: Nftables | undefined;
}

let open: OpenSockets | undefined;

/**
 * From now on this thread's sockets to the kernel about its own namespace stay open from request to request. For threads
 * that stay in that namespace.
 *
 * Opening them takes a dozen system calls each. Closing one of nf_tables after something was deleted takes 10 to 30 ms: the
 * kernel then waits until nobody can be looking at what was deleted.
 */
export function keepSocketsOpen(): void {
  open ??= {};
}

/** Runs `fn` with a NETLINK_ROUTE socket of the namespace the calling thread is in. */
export async function withHost<T>(fn: (host: Netlink) => Promise<T>): Promise<T> {
  const host = open?.host ?? Netlink.openRoute();
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
  const ruleset = open?.ruleset ?? Nftables.open();
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

function keepOrClose<N extends keyof OpenSockets>(
  name: N,
  socket: NonNullable<OpenSockets[N]>,
  failure: unknown,
): void {
  const keep = open !== undefined && !isBroken(failure);
  if (open) open[name] = keep ? socket : undefined;
  if (!keep) socket.close();
}

/** Of a refused request the answer was read; after other errors there may be answers left that belong to no request. */
function isBroken(error: unknown): boolean {
  return error instanceof NodeplaneError && /^ERR_NETLINK_(SOCKET|DECODE)$/.test(error.code);
}
