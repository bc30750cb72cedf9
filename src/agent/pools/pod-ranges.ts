import type { Cidr } from '../../core/index.ts';
import type { Node, ObjectEvent, Resource } from '../../kube/index.ts';

/** The ranges of this node's pods. */
export interface OwnRanges {
  /** A new pod gets one address of each set. Empty: it can get none. */
  readonly sets: readonly (readonly Cidr[])[];
  /** Why a new pod can get no address, in words; empty: it can. */
  readonly lacking: string;
  /** What pods may have addresses of: the ranges of `sets`, and others of which new pods get none. */
  readonly held: readonly Cidr[];
}

/** Which ranges of pod addresses nodes have: what the pods' network and the routes to other nodes ask. */
export interface PodRanges {
  own(): OwnRanges;
  /** The ranges that routes to a node lead to; undefined: those that its Node object names. */
  ofNode(node: Node): readonly string[] | undefined;
  /** Resolves when what is told of other nodes is complete: before, nodes may seem to have no ranges. */
  readonly complete: Promise<void>;
  /** Calls back with the name of each node whose ranges may be others than before, of this one too. */
  listen(listener: (node: string) => void): void;
  /** Addresses were given to pods, or came back. */
  addressesChanged(): void;
}

/** Where ranges come from: Node objects, blocks that nodes share, blocks in manifests. */
export interface RangeSource extends Omit<PodRanges, 'listen' | 'addressesChanged'> {
  /** What the agent's source is to read for it. */
  readonly resources: readonly Resource[];
  /** Takes an event of any kind in; returns the nodes whose ranges may be others than before. */
  event(event: ObjectEvent): readonly string[];
  /** The agent's source has told every object that existed at the start. */
  synced(): void;
  /** @param changed to be called with the nodes whose ranges may be others, besides those that `event` returns */
  start(changed: (nodes: readonly string[]) => void): Promise<void>;
  stop(): Promise<void>;
  /** The addresses in use may be others. Called now and then, too. */
  useChanged(): void;
  /** Whether this node had a range and has it no more, so that the gateway of its pods is in the way of a route to it. */
  isGone(range: Cidr): boolean;
}
