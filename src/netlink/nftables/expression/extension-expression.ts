/** Read back only: a match or target of x_tables, as iptables-nft writes it (net/netfilter/nft_compat.c). */
export interface ExtensionExpression {
  readonly kind: 'match' | 'target';
  readonly name: string;
  readonly revision: number;
  /** The extension's own struct, with padding at its end. */
  readonly info: Uint8Array;
}
