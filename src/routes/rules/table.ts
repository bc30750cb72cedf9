import type { IpFamily } from '../../core/index.ts';
import type { ChainRef, NftSet, SetRef, TableRef } from '../../netlink/nftables/index.ts';

/*
 * The nftables table of the routes: who may use the tunnel, and which packets of pods carry the node's address when they leave
 * the cluster. `nft list table inet nodeplane-routes` shows all of it.
 */

/** One table for both families. */
export const RULES_TABLE: TableRef = { kind: 'table', family: 'inet', name: 'nodeplane-routes' };

/** Sets of addresses, one for each family. */
export type AddressSet =
  /** Addresses of the other nodes. */
  | 'peers'
  /** Those that were some until a moment ago. */
  | 'former-peers'
  /** Who else sent to the tunnel: the kernel's own notes, for the log. */
  | 'strangers';

/** What sets of address blocks are for; each has a set for either family and every length of prefix in use. */
export type BlockSetKind =
  /** Whose packets are masqueraded. */
  | 'masqueraded'
  /** Where packets keep their source. */
  | 'kept'
  /** Where packets go encrypted, or not at all. */
  | 'encrypted'
  /** This node's own pods. */
  | 'own';

/** A set of the first addresses of blocks that are equally long: a lookup costs the same however many there are. */
export interface BlockSet {
  readonly kind: BlockSetKind;
  readonly family: IpFamily;
  readonly prefixLength: number;
}

/**
 * How long packets of a node's last address are let in: it may be told of the change after us, and until then its packets come
 * from there.
 */
const FORMER_PEER_MS = 60_000;
/** Somebody who invents source addresses fills this and nothing else. */
const STRANGERS = { size: 32, timeoutMs: 600_000 };

/** `peers-ipv4` */
export function addressSetName(kind: AddressSet, family: IpFamily): string {
  return `${kind}-${family.toLowerCase()}`;
}

/** `kept-ipv4-24` */
export function blockSetName({ kind, family, prefixLength }: BlockSet): string {
  return `${kind}-${family.toLowerCase()}-${prefixLength}`;
}

/** The set of blocks with this name; undefined for sets of addresses. */
export function parseBlockSetName(name: string): BlockSet | undefined {
  const [, kind, family, length] = /^(masqueraded|kept|encrypted|own)-(ipv4|ipv6)-(\d+)$/.exec(name) ?? [];
  if (kind === undefined) return undefined;
  return { kind: kind as BlockSetKind, family: family === 'ipv4' ? 'IPv4' : 'IPv6', prefixLength: Number(length) };
}

/** A chain of the table, by name. */
export function chainRef(name: string): ChainRef {
  return { kind: 'chain', family: RULES_TABLE.family, table: RULES_TABLE.name, name };
}

/** A set of the table, by name. */
export function setRef(name: string): SetRef {
  return { kind: 'set', family: RULES_TABLE.family, table: RULES_TABLE.name, name };
}

/** A set of single addresses, empty. */
export function addressSet(kind: AddressSet, family: IpFamily): NftSet {
  const set = setOf(addressSetName(kind, family), family);
  switch (kind) {
    case 'peers':
      return set;
    case 'former-peers':
      return { ...set, flags: ['timeout'], timeoutMs: FORMER_PEER_MS };
    case 'strangers':
      return { ...set, flags: ['timeout', 'dynamic'], ...STRANGERS };
  }
}

/** A set of blocks, empty: it holds the first address of each. */
export function blockSet(of: BlockSet): NftSet {
  return setOf(blockSetName(of), of.family);
}

function setOf(name: string, family: IpFamily): NftSet {
  return { ...setRef(name), key: [family === 'IPv4' ? 'ipv4_addr' : 'ipv6_addr'] };
}
