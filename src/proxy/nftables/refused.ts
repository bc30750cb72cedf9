import { constants } from 'node:os';
import { errorText, NodeplaneError } from '../../core/index.ts';
import { isStaleGeneration, type NftChange, NftCommitError } from '../../netlink/nftables/index.ts';
import type { CompiledPort } from './compile/compile.ts';

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
export function blamedPorts(
  error: unknown,
  changes: readonly NftChange[],
  suspects: readonly CompiledPort[],
): Map<CompiledPort, string> {
  const blamed = new Map<CompiledPort, string>();
  if (!(error instanceof NftCommitError)) return blamed;
  for (const refusal of error.refusals.slice(0, MAX_REFUSALS)) {
    const isOwner = ownerTest(changes[refusal.changeIndex ?? -1], refusal.elementIndex);
    const owners = isOwner ? suspects.filter(isOwner) : [];
    if (owners.length === 0 && blamed.size === 0) return blamed;
    // Something that is missing may be so because it was refused before: that has been blamed.
    if (blamed.size > 0 && refusal.errno === constants.errno.ENOENT) continue;
    const reason = errorText(new NftCommitError(changes, [refusal]));
    for (const port of owners) if (!blamed.has(port)) blamed.set(port, reason);
  }
  return blamed;
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
