import {
  addressBits,
  type Cidr,
  type Clock,
  type IpAddress,
  type IpFamily,
  type Rest,
  type SyncRunnerOptions,
} from '../../core/index.ts';
import type { NodeSettings, Plan, PlanDelta, ServiceHint, ServiceStore } from '../plan/index.ts';
import type { Dataplane } from './dataplane.ts';
import type { ProxyObserver } from './events.ts';

/** Looks after connections the kernel remembers, which new rules alone do not redirect. */
export interface FlowKeeper {
  /** What a sync is going to change; told before the commit, also of one that fails. */
  note(delta: PlanDelta): void;
  /**
   * After each successful commit, with the plan that is in the kernel now.
   *
   * @param localAddresses lists the addresses on this machine's interfaces; throws where that was never possible
   * @param isWhole rules may have been missing until now, also those of Services that were not noted
   */
  clean(plan: Plan, localAddresses: () => readonly IpAddress[], isWhole: boolean): Promise<void>;
}

/** The addresses on this machine's interfaces. */
export interface LocalAddresses {
  readonly all: readonly IpAddress[];
  /** The node's own, which may be no Service's: without those that were put there to float from node to node. */
  readonly own: readonly IpAddress[];
}

/**
 * Of the addresses on interfaces those that are the node's: not what is on the device of Services, and its own come with a network.
 *
 * @param ofServices index of that device; undefined: it is not there
 */
export function localAddressesOf(
  listed: readonly { readonly index: number; readonly address: IpAddress; readonly prefixLength: number }[],
  ofServices: number | undefined,
): LocalAddresses {
  const held = listed.filter(({ index }) => index !== ofServices);
  const inNetworks = held.filter(({ address, prefixLength }) => prefixLength < addressBits(address.family));
  return { all: held.map(({ address }) => address), own: inNetworks.map(({ address }) => address) };
}

export interface FamilyProxyOptions extends Pick<SyncRunnerOptions, 'minIntervalMs' | 'maxIntervalMs' | 'retry'> {
  readonly clock: Clock;
  readonly random?: () => number;
  readonly nodeName: string;
  readonly settings: NodeSettings;
  /** Whether external IPs are served (feature gate AllowServiceExternalIPs). @default true */
  readonly externalIps?: boolean;
  readonly store: ServiceStore;
  readonly dataplane: Dataplane;
  /** How often the kernel is read back and compared with what was committed. @default never */
  readonly verifyIntervalMs?: number;
  /**
   * Lists the addresses on this machine's interfaces, when the node is looked at. What it throws is told: the addresses it
   * told last stay in force, and before there are any no sync succeeds.
   */
  readonly localAddresses: () => LocalAddresses;
  /** See NodePlanInput. */
  readonly ownSource?: ((family: IpFamily) => IpAddress | undefined) | undefined;
  /** Where the agent reaches the API server, when it is an address: it may be no Service's. @default none */
  readonly apiServer?: () => IpAddress | undefined;
  /** Where external IPs may be. @default everywhere but where no Service's address may be */
  readonly externalIpCidrs?: readonly Cidr[];
  /** What the mode in use reads of a Service for itself. @default nothing */
  readonly hint?: ServiceHint | undefined;
  /** See PlannerOptions. */
  readonly pauses?: () => Rest;
  readonly observers: readonly ProxyObserver[];
  /** @default nobody looks after them */
  readonly flows?: FlowKeeper;
}
