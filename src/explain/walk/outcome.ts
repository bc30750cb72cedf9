/** What came of a rule. */
export type Outcome =
  | { readonly kind: 'no match' | 'continue' | 'accept' | 'drop' | 'return' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string }
  | { readonly kind: 'reject'; readonly how: string }
  /** It holds something whose effect nobody here knows. */
  | { readonly kind: 'cannot tell'; readonly about: string };
