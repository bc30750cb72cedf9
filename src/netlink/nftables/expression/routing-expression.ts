import type { Register } from './register.ts';

// What rules are told about the routes of a packet.

/** What of the packet the routing table is asked about. */
export type FibFlag = 'saddr' | 'daddr' | 'mark' | 'iif' | 'oif';

/** Asks the routing table. `type` is an RTN_* in host order; `present` makes the result 0 or 1. */
export interface FibExpression {
  readonly kind: 'fib';
  readonly result: 'oif' | 'oifname' | 'type';
  readonly flags: readonly FibFlag[];
  readonly present?: boolean | undefined;
  readonly to: Register;
}

/**
 * Loads where the packet's route sends it on the link: the gateway, or its destination. Of the packet's own family
 * alone. `ipsec`: whether it is to be wrapped, 0 or 1.
 */
export interface RtExpression {
  readonly kind: 'rt';
  readonly key: 'nexthop-ip' | 'nexthop-ip6' | 'ipsec';
  readonly to: Register;
}
