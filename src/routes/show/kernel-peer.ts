import type { Cidr, IpAddress, IpFamily } from '../../core/index.ts';
import type { PeerPlan } from '../plan/planner.ts';

/** How packets get to the pods of one other node, as the kernel holds it in one family, whoever made it so. */
export interface KernelPeer {
  readonly family: IpFamily;
  readonly mode: PeerPlan['kind'];
  /** The link that the routes lead through. */
  readonly device: string;
  /** Undefined: WireGuard needs none. */
  readonly gateway: IpAddress | undefined;
  /** Where the node is; undefined: the kernel does not know any more. */
  readonly address: IpAddress | undefined;
  readonly podCidrs: readonly Cidr[];
  /** The largest packet that the routes take. */
  readonly mtu: number;
  readonly reach: Reach;
}

/** Whether packets arrive, as far as the kernel knows without sending any. */
export interface Reach {
  /** `yes`: all is there, and the next machine on the link has answered before. `unknown`: all is there, nobody was asked yet. */
  readonly verdict: 'yes' | 'no' | 'unknown';
  /** In words: `neighbour STALE`, `eth0 has no carrier`. */
  readonly because: string;
}

/** What is ours in the kernel, in one family. */
export interface KernelPeers {
  readonly peers: readonly KernelPeer[];
  /** Parts that no route uses, in words. */
  readonly leftovers: readonly string[];
}
