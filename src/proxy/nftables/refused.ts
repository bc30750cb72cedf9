import { constants } from 'node:os';
import { errorText, inSlices, NodeplaneError, yielder } from '../../core/index.ts';
import {
  isStaleGeneration,
  type NftChange,
  NftCommitError,
  type NftRuleset,
  nftFamily,
} from '../../netlink/nftables/index.ts';
import { bisect, type LeftOut, type LeftOutPort, type Plan } from '../index.ts';
import type { CompiledPort } from './compile/compile.ts';
import { type TablePlace, toChanges } from './diff/changes.ts';
import { Layout } from './diff/layout.ts';
import { createAll } from './diff/reconcile.ts';

// Which Service port is to blame when the kernel refuses a transaction: one bad Service must not keep the others from
// being programmed.

/** Errors that say nothing about what was asked. */
const NOBODYS_FAULT: ReadonlySet<string> = new Set(['EPERM', 'ENOMEM', 'ENOBUFS', 'EINTR', 'EAGAIN']);

/** Refusals of one transaction that are looked at: each is held against all suspects. */
const MAX_REFUSALS = 200;

/** Whether the kernel, or the encoder, objected to something in the transaction. */
export function isRefusal(error: unknown): error is NodeplaneError {
  if (error instanceof NftCommitError && NOBODYS_FAULT.has(error.errnoName)) return false;
  if (isStaleGeneration(error)) return false;
  return error instanceof NftCommitError || (error instanceof NodeplaneError && error.code === 'ERR_ENCODE');
}

/**
 * All ports of which the error names an object, and what it says about each. None when its first refusal names none of
 * theirs: the kernel goes on after a refusal, and those of the ports may follow from that one.
 */
export function refusedByName(
  error: unknown,
  changes: readonly NftChange[],
  suspects: readonly CompiledPort[],
): LeftOut {
  const refused = new Map<string, LeftOutPort>();
  if (!(error instanceof NftCommitError)) return refused;
  for (const refusal of error.refusals.slice(0, MAX_REFUSALS)) {
    const isOwner = ownerTest(changes[refusal.changeIndex ?? -1], refusal.elementIndex);
    const owners = isOwner ? suspects.filter(isOwner) : [];
    if (owners.length === 0 && refused.size === 0) return refused;
    // Something that is missing may be so because it was refused before: that has been blamed.
    if (refused.size > 0 && refusal.errno === constants.errno.ENOENT) continue;
    const reason = errorText(new NftCommitError(changes, [refusal]));
    for (const { key, name } of owners) if (!refused.has(key)) refused.set(key, { key, name, reason });
  }
  return refused;
}

/**
 * Finds the ports that are refused in a table of their own, which the kernel is asked about and never makes.
 *
 * @param place of that table
 * @param suspects keys of ports of `plan`
 * @param before what was left out until now, by key
 * @returns the ports to leave out, by key; see `bisect`. None when the table is refused without any port
 */
export async function refusedByTrial(
  nft: NftRuleset,
  place: TablePlace,
  plan: Plan,
  suspects: readonly string[],
  before: LeftOut,
): Promise<LeftOut> {
  const { family } = place;
  const table = { kind: 'table', family: nftFamily(family), name: place.table } as const;
  const rest = yielder();
  const refuses = async (group: readonly string[]): Promise<string | undefined> => {
    const layout = new Layout(family, plan.node);
    for (const key of group) {
      await inSlices(layout.upsert(plan.ports.get(key)!), rest);
      await rest();
    }
    await inSlices(layout.place(), rest);
    const edits = createAll(await inSlices(layout.wanted(), rest));
    const changes: NftChange[] = [{ operation: 'create', object: table }, ...toChanges(place, edits)];
    try {
      await nft.commitAsync(changes, { checkOnly: true });
      return undefined;
    } catch (error) {
      if (isRefusal(error)) return errorText(error);
      throw error;
    }
  };
  if ((await refuses([])) !== undefined) return new Map();
  return bisect(suspects, before, (key) => plan.ports.get(key)!.name, refuses);
}

function ownerTest(
  change: NftChange | undefined,
  elementIndex: number | undefined,
): ((port: CompiledPort) => boolean) | undefined {
  const object = change?.object;
  switch (object?.kind) {
    case 'chain':
    case 'rule': {
      const chain = object.kind === 'chain' ? object.name : object.chain;
      return ({ chains }) => chains.has(chain);
    }
    case 'set':
      return ({ sets }) => sets.has(object.name);
    case 'elements': {
      const element = object.elements.length === 1 ? object.elements[0] : object.elements[elementIndex ?? -1];
      if (!element) return ({ sets }) => sets.has(object.set);
      const begins = (key: Uint8Array) => Buffer.compare(key, element.key.subarray(0, key.length)) === 0;
      return ({ claims, groups, shared }) =>
        groups.some(({ set }) => set === object.set) ||
        claims.some(
          (claim) =>
            claim.entries.some(({ set, key }) => set === object.set && begins(key)) ||
            claim.groups.some(({ set, prefix }) => set === object.set && begins(prefix)),
        ) ||
        shared.some(({ set, key }) => set === object.set && begins(key));
    }
    default:
      return undefined;
  }
}
