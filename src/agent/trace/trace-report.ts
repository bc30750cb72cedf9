import type { LegacyDrop } from './legacy/legacy-steps.ts';
import type { Drop, Fate, KernelDrop } from './traced-flow.ts';

/** What the JSON of a trace is of. Fields may be added to it. */
export const TRACE_SCHEMA = 'nodeplane/trace/v1';

/** What a trace saw. Text and JSON are both made of it. */
export interface TraceReport {
  readonly schema: typeof TRACE_SCHEMA;
  readonly question: {
    /** An address, or `any`. */
    readonly source: string;
    /** `10.96.0.10:80/tcp` */
    readonly destinations: readonly string[];
    readonly service: string | null;
  };
  /** `unknown`: nothing was seen, or not enough. */
  readonly verdict: 'works' | 'fails' | 'unknown';
  readonly tookMs: number;
  /** In the order in which they were first seen. */
  readonly flows: readonly FlowReport[];
  /** What --probe came to; null: none was asked for. */
  readonly probe: { readonly source: string; readonly result: string } | null;
  /** Why not all was seen, in words. */
  readonly incomplete: readonly string[];
  /** Where packets could not be followed there: legacy iptables rules that dropped or refused packets meanwhile, anybody's. */
  readonly legacyDrops: readonly { readonly table: string; readonly rule: string; readonly packets: number }[];
  /** Virtual servers of IPVS that packets may have met, and what they did meanwhile, for anybody. */
  readonly ipvsServers: readonly IpvsServerReport[];
  /** Why the kernel's reasons for dropping packets are not known, or not all; null: they are. */
  readonly dropReasons: string | null;
  /** Connections that IPVS keeps. */
  readonly ipvs: readonly { readonly client: string; readonly server: string; readonly state: string }[];
}

export interface IpvsServerReport {
  /** `10.96.0.10:80/tcp` */
  readonly server: string;
  /** Since the trace began, as of the kernel's last count: it counts every two seconds. */
  readonly connections: number;
  readonly packetsIn: number;
  readonly packetsOut: number;
  readonly destinations: readonly {
    readonly address: string;
    readonly weight: number;
    /** Established ones, when the trace began and when it ended. */
    readonly active: readonly [before: number, after: number];
    /** Others: opening, closing, remembered; all of UDP. */
    readonly inactive: readonly [before: number, after: number];
  }[];
}

export interface FlowReport {
  readonly protocol: string;
  readonly source: string;
  readonly destination: string;
  /** It was under way before. */
  readonly old: boolean;
  readonly fate: Fate;
  /** `SYN`; empty: not TCP, or not known. */
  readonly flags: string;
  /** Interfaces; null: not seen, or none. */
  readonly iif: string | null;
  readonly oif: string | null;
  /** Where it was translated to; null: it was not. */
  readonly endpoint: string | null;
  /** Whom the endpoint sees in place of the source; null: the source itself. */
  readonly maskedAs: string | null;
  /** The last hook the way ended in, where it ended without a rule that tells; null otherwise. */
  readonly lostIn: string | null;
  /** The rule of legacy iptables that took it there; null: none, or it could not be followed. */
  readonly legacyDrop: LegacyDrop | null;
  /** `SYN-ACK`, or `ICMP port-unreachable from 10.244.1.9`; empty: none came, or it is not TCP. */
  readonly replyFlags: string;
  /** From the first packet to the first one back; null: none came. */
  readonly answeredAfterMs: number | null;
  /** From the first packet to the end of the trace. */
  readonly watchedMs: number;
  readonly drop: DropReport | null;
  /** Why the kernel dropped a packet of it, where no rule is named; null: it told nothing. */
  readonly kernelDrop: KernelDrop | null;
}

export interface DropReport extends Omit<Drop, 'handle'> {
  /** Null: the chain's policy. */
  readonly handle: number | null;
  /** As `nft` prints it, with its comment; null: the policy, or the rule is gone by now. */
  readonly rule: string | null;
}
