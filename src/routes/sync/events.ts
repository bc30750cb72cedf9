import type { Cidr, Drift, IpAddress, IpFamily } from '../../core/index.ts';
import type { PeerPlan } from '../plan/planner.ts';

/** What the routes of one family let others see; log and metrics live on it. */
export type RouteEvent = { readonly family: IpFamily } & RouteHappening;

/** What happened to the routes of a family. */
export type RouteHappening =
  /** Nothing can be done yet; what is in the kernel stays as it is. */
  | { readonly kind: 'waiting'; readonly reason: string }
  | {
      readonly kind: 'synced';
      readonly full: boolean;
      readonly seconds: number;
      /** Requests to the kernel. */
      readonly operations: number;
      readonly figures: RouteFigures;
      readonly own: OwnEnd;
    }
  /** Nothing, or not all, was done; it is tried again from scratch. */
  | { readonly kind: 'syncFailed'; readonly error: unknown; readonly retryInMs: number }
  /** Packets to the pods of all other nodes may have this many bytes from now on; the first time, or another number than before. */
  | { readonly kind: 'mtuKnown'; readonly mtu: number }
  /** There are no routes to the pods of this Node; undefined: there are now, or it is gone. */
  | { readonly kind: 'leftOut'; readonly name: string; readonly reason: string | undefined }
  /** Others changed what is ours, or what it rests on; all is compared at once. */
  | { readonly kind: 'disturbed' }
  /** The kernel does not hold what was written; all is written again at once. Never empty. */
  | { readonly kind: 'driftFound'; readonly drifts: readonly Drift[] }
  | { readonly kind: 'verifyFailed'; readonly error: unknown };

/** This node as others reach its pods in one family, when the kernel holds what that takes. */
export interface OwnEnd {
  readonly address: IpAddress;
  /** Of the VXLAN device, if there is one. */
  readonly mac: Uint8Array;
  /** Of its pods; at least one. */
  readonly ranges: readonly Cidr[];
  /** Largest packet to other nodes' pods. */
  readonly mtu: number;
}

/** How things stand after a sync. */
export interface RouteFigures {
  /** Peers whose pods are reached, by the way to them. */
  readonly peers: Readonly<Record<PeerPlan['kind'], number>>;
  /** Ranges of peers that are not left out for what their Nodes say. */
  readonly wanted: number;
  /** Those of them that the kernel has taken. */
  readonly inKernel: number;
  /** Nodes with pods to which there are no routes. */
  readonly leftOut: number;
}

/** Called synchronously, in order. Must not throw. */
export type RouteObserver = (event: RouteEvent) => void;
