import type {
  BaseChain,
  ChainRef,
  NftChain,
  NftElement,
  NftRule,
  NftSet,
  SetRef,
} from '../../netlink/nftables/index.ts';
import type { Interface, KnownBytes, Packet } from '../packet/index.ts';

export type Hook = 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting';

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
  /** The element a key falls into; undefined when there is none. */
  getElement(set: SetRef, key: Uint8Array): NftElement | undefined;
}

/** What rules and the way between the hooks ask of the host. Everything may be unknown: undefined. */
export interface Host {
  /** What `fib` expressions ask. @returns RTN_* of <linux/rtnetlink.h> for an address */
  addressType(address: KnownBytes, on?: Interface): number | undefined;
  /** By which interface a packet would leave that goes where this one's source (`back`) or destination is. */
  interfaceTo(packet: Packet, which: 'source' | 'destination'): Interface | 'none' | undefined;
  /** The address that masquerading puts on packets that leave by an interface. */
  addressOn(oif: Interface, packet: Packet): Uint8Array | undefined;
}
