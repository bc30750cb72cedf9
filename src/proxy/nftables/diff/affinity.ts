import { isNotFound } from '../../../core/index.ts';
import { type NftElement, type NftRuleset, nftFamily } from '../../../netlink/nftables/index.ts';
import { keyText } from '../compile/keys.ts';
import { isAffinity } from '../compile/schema.ts';
import type { TablePlace } from './changes.ts';
import type { Edits } from './edits.ts';
import type { KernelTable } from './kernel-state.ts';

// The clients that affinity maps remember: written by the path of packets, looked after here.

/** Clients leave by themselves (their time is over) between the listing and the removal. */
const ATTEMPTS = 8;

/** The clients that keep an endpoint which is not there any more. */
export function staleClients(clients: readonly NftElement[], values: ReadonlySet<string>): NftElement[] {
  return clients.filter(({ data }) => data === undefined || !values.has(keyText(data)));
}

/**
 * Makes maps forget clients whose endpoint is gone. To be called when the rules do not choose that endpoint any more, so
 * that nobody can be given it meanwhile.
 *
 * @param affinities maps that exist, with the values that are right in them (`keyText`)
 * @returns how many clients were forgotten
 */
export async function forgetClients(
  nft: NftRuleset,
  { family, table }: TablePlace,
  affinities: ReadonlyMap<string, ReadonlySet<string>>,
): Promise<number> {
  let forgotten = 0;
  for (const [name, values] of affinities) {
    const set = { kind: 'set', family: nftFamily(family), table, name } as const;
    for (let attempt = 1; ; attempt++) {
      // There may be 262,144, and who they are is up to the clients: the event loop runs meanwhile.
      const elements = staleClients(await nft.listElementsAsync(set), values).map(({ key }) => ({ key }));
      if (elements.length === 0) break;
      try {
        const object = { kind: 'elements', family: set.family, table, set: name, elements } as const;
        await nft.commitAsync([{ operation: 'delete', object }]);
        forgotten += elements.length;
        break;
      } catch (error) {
        if (attempt === ATTEMPTS || !isNotFound(error)) throw error;
      }
    }
  }
  return forgotten;
}

/**
 * The clients of a map that is made anew, with another timeout: who was last seen within it stays for the rest of it.
 *
 * @param before the timeout they were remembered with, in ms
 * @param after the new one, in ms
 */
function keptClients(
  clients: readonly NftElement[],
  values: ReadonlySet<string>,
  before: number,
  after: number,
): NftElement[] {
  const stale = new Set(staleClients(clients, values));
  return clients.flatMap((client) => {
    const { key, data, timeoutMs = before, expirationMs = 0 } = client;
    const left = after - Math.max(0, timeoutMs - expirationMs);
    return stale.has(client) || left <= 0 ? [] : [{ key, data, expirationMs: Math.min(left, after) }];
  });
}

/** Puts the clients of maps that are made anew among the elements to add. */
export function seedClients(
  edits: Edits,
  { sets, elements }: Pick<KernelTable, 'sets' | 'elements'>,
  affinities: ReadonlyMap<string, ReadonlySet<string>>,
  names: Iterable<string>,
): void {
  for (const name of names) {
    const [old, made, values] = [sets.get(name), edits.addSets.get(name), affinities.get(name)];
    if (!old || !made || !values || !isAffinity(old)) continue;
    const clients = keptClients(elements.get(name) ?? [], values, old.timeoutMs ?? 0, made.timeoutMs ?? 0);
    if (clients.length > 0) edits.addElements.set(name, clients);
  }
}
