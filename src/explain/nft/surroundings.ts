import type {
  BaseChain,
  ChainRef,
  Expression,
  NftChain,
  NftElement,
  NftRule,
  NftSet,
  SetRef,
} from '../../netlink/nftables/index.ts';
import type { Extension, Facts } from '../iptables/index.ts';
import type { Packet } from '../packet/index.ts';
import type { Hook, Situation } from '../walk/index.ts';

/** A base chain, with where it is hooked in. */
export type BaseChainOf = NftChain & { readonly base: BaseChain };

/**
 * The rules a packet meets: read back from the kernel, or a fake. Only what the walk comes to is asked for, so that a table
 * of 100,000 elements costs a few lookups.
 */
export interface Rules {
  /** The base chains of a hook that see packets of the family, in the order in which the kernel runs them. */
  baseChains(hook: Hook, family: Packet['family']): readonly BaseChainOf[];
  rulesOf(chain: ChainRef): readonly NftRule[];
  /** Undefined when there is none: then the rule could not exist. */
  getSet(set: SetRef): NftSet | undefined;
  /** The element a key falls into, or the one that matches what no other does; undefined when there is none. */
  getElement(set: SetRef, key: Uint8Array | 'catch-all'): NftElement | undefined;
  /** Whether rules of its table put elements into a set, or take them out. @default they do not */
  isWritten?(set: NftSet): boolean;
  /** The rules of a chain as iptables-nft prints them, without `-A CHAIN`; undefined when it cannot be asked. */
  textsOf?(chain: ChainRef): readonly string[] | undefined;
  /** Whether there is such a chain; asked only where there are texts. */
  hasChain?(chain: ChainRef): boolean;
}

/** Where a rule is evaluated. */
export interface NftSituation extends Situation {
  readonly rules: Rules;
  /** For what iptables-nft wrote. */
  readonly facts: Facts;
  /** The matches and targets of x_tables in the rule. */
  readonly extensions: ReadonlyMap<Expression, Extension>;
}
