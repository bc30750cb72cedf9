import type { Registry } from 'prom-client';
import type { Cidr, IpFamily, Removals } from '../core/index.ts';
import type { Protocol } from '../kube/index.ts';
import type { Exec } from '../sys/index.ts';
import type { ModeMetrics } from './observe/index.ts';
import type { ServiceHint } from './plan/index.ts';
import type { Dataplane } from './sync/index.ts';

/** The ways to make Services work in the kernel, by the name the configuration calls them. */
export type ProxyMode = 'iptables' | 'nftables' | 'ipvs';

// What a way to make Services work in the kernel says about itself. Each folder of a dataplane exports one Mode, and nobody
// else knows what is particular to it.

/** One way to make Services work in the kernel. `Settings`: what of the configuration it reads. */
export interface Mode<Settings> {
  /**
   * Looks whether it can be used on this machine. Nothing is written yet.
   *
   * @throws ERR_IPTABLES, ERR_NFTABLES, ERR_IPVS with one sentence about what is missing; rather than doing something else
   *   than asked for; ERR_IPTABLES_LOCK when that cannot be told now
   */
  prepare(settings: Settings, machine: Machine): Promise<PreparedMode>;
  /** Where it, or a kube-proxy in the same mode, leaves something in the kernel, in one family. */
  traces(family: IpFamily, options: TraceOptions): readonly Trace[];
  /** The modes whose traces are in its way, in the order in which they are removed. */
  readonly replaces: readonly ProxyMode[];
  /** Of which protocols tracked flows end when a change of Services has made them stale. */
  readonly flowProtocols: readonly Protocol[];
  /** Of which protocols such flows end only if nobody has answered them: others would be cut off. */
  readonly unansweredProtocols: readonly Protocol[];
  /** Of which protocols NodePorts answer at localhost, where that is asked for. */
  readonly localhostProtocols: readonly Protocol[];
  readonly metrics: ModeMetrics;
  /** The sysctls that it sets once for the node when it begins, by name. @default none */
  sysctls?(settings: Settings): Readonly<Record<string, number>>;
  /** An annotation of Services that means something in this mode alone. @default none */
  readonly hint?: ServiceHint;
}

/** What a mode is prepared with. */
export interface Machine {
  /** Those the machine has. */
  readonly families: readonly IpFamily[];
  /** Runs programs. */
  readonly exec: Exec;
  readonly logger: ModeLogger;
}

/** As much of a log as a mode writes to. */
export interface ModeLogger {
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
}

/** A mode that was looked at and can be used on this machine. Nothing is written yet. */
export interface PreparedMode {
  /** Those that can be served; at least one. */
  readonly families: readonly IpFamily[];
  /** Why a family of this machine cannot be served. */
  readonly unserved: ReadonlyMap<IpFamily, string>;
  /** Sets up what the families share, with the metrics only this mode has, and returns the maker of their dataplanes. */
  begin(registry: Registry): (family: IpFamily, hooks: DataplaneHooks) => Dataplane;
  /**
   * What the kernel's objects of this mode have counted since they were made, by family and key of the Service port. Throws KernelError.
   * Missing: they do not count.
   */
  traffic?(): ReadonlyMap<IpFamily, ReadonlyMap<string, PortTraffic>>;
}

/** What a Service port has carried. Out is what clients got. */
export interface PortTraffic {
  readonly connections: number;
  readonly packetsIn: number;
  readonly packetsOut: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** What a dataplane tells besides the outcome of its commits. */
export interface DataplaneHooks {
  /** The kernel reports that somebody else changed what is ours: it has to be looked at now. */
  readonly changedByOthers: () => void;
}

/** One place in the kernel where a mode leaves something, in one family. */
export interface Trace {
  /** For people: `iptables-nft IPv4`. */
  readonly name: string;
  /** Whether there is such a place on this machine. Looking must not make one. */
  isUsable(): Promise<boolean>;
  /** Whether a proxy works here, as far as one look tells; false makes a closer one needless. @default perhaps */
  isInUse?(): boolean;
  /**
   * Removes what is ours or a kube-proxy's, and nothing else; nothing there is no error.
   *
   * @param removals hears of each thing, and says whether to do it. @default everything
   */
  clean(removals?: Removals): Promise<void>;
  /** Removes what is ours and a kube-proxy does not know; what both have stays as it is. Missing: there is nothing of the kind. */
  cleanOwn?(removals?: Removals): Promise<void>;
  /**
   * Gives way to another mode, whose rules stand: as `clean`, but established connections may finish. Ends early, with the
   * rest left as it is, when `signal` aborts. Missing: `clean` does not end connections.
   */
  retire?(signal: AbortSignal): Promise<void>;
}

/** What looking for traces needs. */
export interface TraceOptions {
  readonly exec: Exec;
  /** Virtual servers of IPVS in these ranges are not ours, unless we made them. @default none */
  readonly excludeCidrs?: readonly Cidr[];
}
