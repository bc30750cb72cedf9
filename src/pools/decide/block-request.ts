import type { IpFamily } from '../../core/index.ts';
import type { PodCIDRBlock } from '../../kube/index.ts';

/**
 * One request to the API server. Every write of a block that is there already is a compare-and-swap on the version that
 * the view shows: whoever wrote it since makes it fail.
 *
 * - `lookAtNode`: the UID of this node's Node, by a read that no cache answers
 * - `claim`: create a block in state pending. Of several nodes the server lets one
 * - `confirm`: a pending block of ours, from then on to be used
 * - `renew`: write ourselves into a block of ours: the process that uses it, the Node's present UID
 * - `release`: a block, ours and empty or of a node that is gone, that nobody is to use any more: state releasing
 * - `remove`: delete a block that nobody uses
 * - `lookForNode`: the UID of the Node that another's block names, as lookAtNode
 */
export type BlockRequest =
  | { readonly kind: 'lookAtNode' }
  | {
      readonly kind: 'claim';
      readonly family: IpFamily;
      readonly cidr: string;
      readonly pool: string;
      readonly nodeUID: string;
    }
  | { readonly kind: 'confirm' | 'release' | 'remove' | 'lookForNode'; readonly block: PodCIDRBlock }
  | {
      readonly kind: 'renew';
      readonly block: PodCIDRBlock;
      /** What is to become of the block's `nodeUID`; undefined: it stays. */
      readonly nodeUID: string | undefined;
    };

/** What became of a request. */
export type BlockOutcome =
  | {
      readonly kind: 'done';
      /** Of a look: the UID of the Node; undefined: there is none. */
      readonly uid?: string | undefined;
    }
  /** Somebody was faster: the block exists, was changed or is gone. The view will show it. */
  | { readonly kind: 'beaten' }
  /** It may have been done, or may be done yet, unless the server refused it. */
  | { readonly kind: 'failed'; readonly retryAfterMs: number };

/** What a request is about: while it fails, it is tried again after ever longer waits. */
export function requestKey(request: BlockRequest): string {
  switch (request.kind) {
    case 'lookAtNode':
      return request.kind;
    case 'claim':
      return `${request.kind} ${request.family}`;
    default:
      return `${request.kind} ${request.block.metadata.name}`;
  }
}

/** The version of the block that a request changes; empty: it changes none. */
export function requestVersion(request: BlockRequest): string {
  return 'block' in request ? versionOf(request.block) : '';
}

/** Its metadata.resourceVersion; empty when the server has not given it one. */
export function versionOf({ metadata }: PodCIDRBlock): string {
  return metadata.resourceVersion ?? '';
}

/** Its metadata.uid; empty when the server has not given it one. */
export function uidOf({ metadata }: PodCIDRBlock): string {
  return metadata.uid ?? '';
}
