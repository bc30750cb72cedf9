import type { Registry } from 'prom-client';
import type { KubeProxyConfig } from '../config/index.ts';
import type { Clock, ComparedPart } from '../core/index.ts';
import type { ApiClient, EventRecorder, KubeKind, NodeAnnouncer, ObjectEvent, Resource } from '../kube/index.ts';
import type { ControlPages } from './control/control-server.ts';
import type { Pages } from './http/http-server.ts';
import type { Logger } from './logger.ts';

/** What the agent does for the node in one respect: Services, the pods' network. */
export interface Part {
  /** The resources of whose objects it hears in `changed`. @default none */
  readonly resources?: readonly Resource[];
  /** What it shows on the metrics port. @default none */
  readonly pages?: Pages;
  /** What root may ask it for at the control socket. @default nothing */
  readonly controlPages?: ControlPages;
  /** What of it lies in the kernel, to be compared with what is meant (`nodeplane diff`). @default nothing */
  compared?(): readonly ComparedPart[];
  /** Whether it does what it is for, at this moment: /readyz shows it. @default nobody asks */
  readiness?(): Readiness;
  /**
   * Begins the part's work; no object was told before. Resolves when the next part may start.
   *
   * @throws what makes the agent end
   */
  start(): void | Promise<void>;
  /** Ends the part's work. Nothing is told any more from the moment this is called. */
  stop(): void | Promise<void>;
  /** An object came, changed or went; the source may tell more objects than the part has to do with. */
  changed?(event: ObjectEvent): void;
  /** Every object of a kind that existed at the start was told. */
  listed?(kind: KubeKind): void;
  /** Every object that existed at the start was told, but for those that cannot be read, or not soon. */
  synced?(): void;
}

/** Whether a part of the agent does what it is for. */
export interface Readiness {
  /** Of the part: `services`, `routes`, `cni`. */
  readonly name: string;
  /** Why not; undefined: it does. */
  readonly reason: string | undefined;
}

/** Knows how large the packets of pods may be on their way to other nodes. */
export interface MtuSource {
  /** In bytes; undefined while it is not known. */
  mtu(): number | undefined;
  /** Calls `listener` whenever it may be another one. */
  onMtuChange(listener: () => void): void;
}

/** How the pods' network stands, for people. */
export interface PodStanding {
  /** Why pods cannot be made, as /readyz has it; empty: they can, or that is not the agent's business. */
  readonly lacks: string;
  /** Why new pods have the network of somebody else: the end of a sentence; empty: they have not. */
  readonly elsewhere: string;
  /** What of others may drop their packets, a sentence each. */
  readonly obstacles: readonly string[];
  /** What of their interfaces is otherwise than meant, and is left so: a sentence each, of which `nodeplane diff` tells more. */
  readonly differences: readonly string[];
}

/** Where the pods' network is not the agent's business. */
export const PODS_OF_OTHERS: PodStanding = { lacks: '', elsewhere: '', obstacles: [], differences: [] };

/** What every part is given. */
export interface PartContext {
  readonly config: KubeProxyConfig;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Undefined where the objects come from a directory of manifests. */
  readonly client: ApiClient | undefined;
  /** Writes annotations and conditions of our own Node. */
  readonly announcer: Pick<NodeAnnouncer, 'want' | 'wantCondition'>;
  /** Writes Events; undefined without an API server. */
  readonly recorder: EventRecorder | undefined;
  /** Aborts as soon as the agent is to stop, before any part is stopped. */
  readonly stopping: AbortSignal;
  /** Makes the agent end, because this part cannot do its work. */
  readonly unusable: (error: Error) => void;
}
