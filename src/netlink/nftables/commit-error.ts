import { KernelError } from '../../core/index.ts';
import { describeObject } from './describe.ts';
import type { NftChange } from './object/model.ts';

/** <linux/errno.h>; Node has no name for it. */
const ERESTART = 85;

/** One change of a transaction that the kernel refused. */
export interface NftRefusal {
  /** Positive errno. */
  readonly errno: number;
  /** The kernel's own sentence, when it gave one. */
  readonly extAck: string | undefined;
  /** Index of the change; undefined when the kernel refused the transaction as a whole. */
  readonly changeIndex: number | undefined;
  /** Of elements: the index of the one it objected to, when the kernel said it. */
  readonly elementIndex: number | undefined;
}

/** A transaction the kernel refused: nothing of it was done. It is an error of the first change that was refused. */
export class NftCommitError extends KernelError {
  /** The change that was refused; undefined when it was the transaction as a whole. */
  readonly change: NftChange | undefined;
  readonly changeIndex: number | undefined;
  /** Of elements: the index of the one the kernel objected to, when it said it. */
  readonly elementIndex: number | undefined;
  /** All refusals, in the order of the changes. The kernel goes on after one, and later ones may follow from it. */
  readonly refusals: readonly NftRefusal[];

  /** `refusals` holds at least one. */
  constructor(changes: readonly NftChange[], refusals: readonly NftRefusal[]) {
    const { errno, extAck, changeIndex, elementIndex } = refusals[0]!;
    const change = changeIndex === undefined ? undefined : changes[changeIndex];
    const element = elementIndex === undefined ? '' : `element ${elementIndex} of `;
    super('ERR_NETLINK_ACK', {
      operation: change ? `nf_tables ${change.operation}` : 'nf_tables commit',
      object: change ? `${element}${describeObject(change.object)}` : `${changes.length} changes`,
      errno,
      extAck: extAck ?? (errno === ERESTART ? 'the ruleset is not of the expected generation any more' : undefined),
    });
    this.name = 'NftCommitError';
    this.change = change;
    this.changeIndex = changeIndex;
    this.elementIndex = elementIndex;
    this.refusals = refusals;
  }
}

/** Whether a commit was refused because the ruleset is not of the expected generation any more: read it again. */
export function isStaleGeneration(error: unknown): error is NftCommitError {
  return error instanceof NftCommitError && error.errno === ERESTART;
}
