import type { Register } from './register.ts';

// What translates addresses and ports, once for the connection that the packet begins.

/** NF_NAT_RANGE_*: how ports are chosen, and `netmap`, which keeps the part of an address that the range leaves open. */
export type NatFlag = 'random' | 'random-fully' | 'persistent' | 'netmap';

/** How a translation chooses a port. */
interface PortChoice {
  /** In network byte order. Missing: the port stays, unless another connection has it. */
  readonly port?: Register | undefined;
  /** The last port of a range. Missing: just the one. */
  readonly portMax?: Register | undefined;
  readonly flags?: readonly NatFlag[] | undefined;
}

/** Translates an address, a port, or both. */
export interface NatExpression extends PortChoice {
  readonly kind: 'nat';
  readonly type: 'snat' | 'dnat';
  readonly family: 'ip' | 'ip6';
  readonly address?: Register | undefined;
  /** The last address of a range. Missing: just the one. */
  readonly addressMax?: Register | undefined;
}

/** Translates the source to the address of the interface the packet leaves by. */
export interface MasqueradeExpression extends PortChoice {
  readonly kind: 'masquerade';
}

/** Translates the destination to this host. */
export interface RedirectExpression extends PortChoice {
  readonly kind: 'redirect';
}
