/** How much one Node may ask of this one, each with its reason. */
export const LIMITS = {
  /** The API allows one pod CIDR a family; a node with a thousand pods has 16 blocks of 64 addresses. */
  rangesOfPeer: 256,
  /** Registered again and again, each time with pods that live on. */
  formerRangesOfPeer: 16,
  /** Nodes left out that have an Event at a time: of all parts together 25 are written at once. The log names all. */
  leftOutTold: 10,
  /** Nodes of a family in one answer about how things stand: the largest cluster that Kubernetes is tested with. */
  standingsTold: 5000,
} as const;
