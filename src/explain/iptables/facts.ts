import type { KnownBytes } from '../packet/index.ts';

/** What rules of iptables ask of the kernel, besides the packet and the host. All of it may be left out: not known. */
export interface Facts {
  /** Sets of addresses and ports. */
  readonly ipsets?: IpSets | undefined;
  /**
   * The names of those, and of lists of `-m recent`, that rules have changed for first packets: what later packets find
   * there is not known.
   */
  readonly changedSets?: Set<string>;
  /**
   * Whether an address is in a list of `-m recent`: `never` when it is not, `seen` when it is, whenever that was.
   *
   * @default not known
   */
  recent?(list: string, address: KnownBytes): 'seen' | 'never' | undefined;
  /**
   * Whether a process takes packets from a queue.
   *
   * @default not known
   */
  isQueueHeard?(queue: number): boolean | undefined;
  /**
   * Whether a socket of this host listens at exactly this address and port.
   *
   * @default not known
   */
  isHeardAt?(protocol: number, address: KnownBytes, port: KnownBytes): boolean | undefined;
  /**
   * Whether no packet is to be wrapped by IPsec, nor was: there is nothing that does it.
   *
   * @default not known
   */
  isIpsecIdle?(): boolean;
}

/** A part of a set's key: what a rule says with `src` or `dst` for it. */
export interface SetKey {
  readonly address: KnownBytes;
  readonly port: KnownBytes;
}

/** What a set says about a packet. */
export type InSet = 'not there' | { readonly mark: number | undefined; readonly markMask?: number | undefined };

export interface IpSets {
  /**
   * Looks a packet up.
   *
   * @param directions what `src` or `dst` mean for it, in the order of the rule
   * @returns undefined when nobody can tell: there is no such set, it is of a type nobody here knows, the key is not all known
   */
  find(set: string, directions: readonly SetKey[], protocol: number): InSet | undefined;
  /** The name of the set with a number of the kernel's, as rules have it; undefined when nobody can tell. */
  nameOf(index: number): string | undefined;
}
