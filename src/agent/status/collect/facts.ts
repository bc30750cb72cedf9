import type { IpFamily } from '../../../core/index.ts';
import type { SourceProblem } from '../../../kube/index.ts';
import type { DatedStanding } from '../../../routes/index.ts';
import type { PodStanding } from '../../part.ts';
import type { OwnCommands } from '../own-commands.ts';
import type { AddressRange, PeerReport } from '../status.ts';
import type { FamilyRecord } from './recorder.ts';
import type { ServiceIndex } from './service-index.ts';

/** What the eight questions are answered from. Ages and times in seconds before now, unless they are said to be calendar time. */
export interface StatusFacts {
  readonly node: string;
  readonly version: string;
  readonly mode: string;
  readonly upSeconds: number;
  /** Resident memory of the agent, in bytes. */
  readonly memory: number;
  /** Whether every family keeps up with what is wanted (/healthz, whatever the node's own fate). */
  readonly healthy: boolean;
  /** Who works on this node while this agent stands by, in words; empty: it works itself. */
  readonly standsByFor: string;
  /** Age by a moment of the clock's `now`. */
  readonly age: (at: number) => number;
  readonly families: readonly FamilyRecord[];
  /** Undefined: the objects come from a directory of manifests. */
  readonly api: { readonly server: string; readonly watches: readonly WatchAge[] } | undefined;
  /** The directory of manifests; empty: none. */
  readonly manifests: string;
  readonly objectProblems: readonly SourceProblem[];
  readonly services: Pick<ServiceIndex, 'counts' | 'troubled'>;
  /** Undefined: the kernel tracks no connections here, or does not say. */
  readonly conntrack: { readonly count: number; readonly max: number } | undefined;
  /** Undefined: without --routes. */
  readonly peers: PeerFacts | undefined;
  /** What of the routes of an agent with --routes is there without it; empty: nothing. */
  readonly leftRoutes: string;
  /** The CNI configuration of an agent with --cni that is there without it, and nobody serves; empty: there is none. */
  readonly leftNetwork: string;
  /** Undefined: without --routes and --cni. */
  readonly addresses: AddressFacts | undefined;
  readonly pods: PodStanding;
  readonly changes: { readonly count: number; readonly last: number | undefined; readonly what: string };
  /** Where this machine reaches the ports of the agent, as `address:port`; empty: the agent listens at none. */
  readonly ports: { readonly health: string; readonly metrics: string };
  /** Those that ask this agent. */
  readonly commands: OwnCommands;
}

export interface WatchAge {
  readonly resource: string;
  readonly seconds: number;
}

/** The routes of one family, as the agent keeps them. */
export interface PeerFamily {
  readonly family: IpFamily;
  /** What keeps all of them from being right; undefined: nothing. */
  readonly problem: string | undefined;
  readonly standings: ReadonlyMap<string, DatedStanding>;
}

export interface PeerFacts {
  readonly total: number;
  /** Not, or not all, reached. */
  readonly wrong: number;
  /** Those told, the wrong ones first. */
  readonly peers: readonly PeerReport[];
  readonly problems: readonly string[];
  /** Age of the last change of any of them. */
  readonly ageSeconds: number | null;
}

export interface AddressFacts {
  readonly ranges: readonly AddressRange[];
  /** Why a new pod can get no address; empty: it can, or that is not the agent's business. */
  readonly lacking: string;
}
