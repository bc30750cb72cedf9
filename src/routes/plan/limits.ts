/** How much one Node may ask of this one, each with its reason. */
export const LIMITS = {
  /** The API allows one pod CIDR a family; a node with a thousand pods has 16 blocks of 64 addresses. */
  rangesOfPeer: 256,
  /** Nodes left out that are told by name: somebody should be able to read them. */
  leftOutTold: 20,
} as const;
