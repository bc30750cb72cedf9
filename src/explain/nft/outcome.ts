import type { Verdict } from '../../netlink/nftables/index.ts';

/** What came of a rule. */
export type Outcome =
  | { readonly kind: 'no match' }
  | Exclude<Verdict, { readonly kind: 'break' }>
  | { readonly kind: 'reject'; readonly how: string }
  /** It holds something whose effect nobody here knows. */
  | { readonly kind: 'cannot tell'; readonly about: string };
