import { formatCidr, formatIp, type IpFamily } from '../../core/index.ts';
import type { DatedStanding, PeerPlan } from '../../routes/index.ts';

/** What the agent says at /routes about the routes it keeps: JSON for `nodeplane routes`. */
export interface RoutesReport {
  /** The Node object of this machine. */
  readonly node: string;
  /** --routes */
  readonly mode: string;
  readonly families: readonly FamilyReport[];
}

export interface FamilyReport {
  readonly family: IpFamily;
  /** Why the routes are not what they should be, in words; null: they are. */
  readonly problem: string | null;
  /** How many Nodes have pods of this family; those beyond a limit are not listed. */
  readonly total: number;
  readonly nodes: readonly NodeReport[];
}

/** How it stands with the pods of one other Node. */
export interface NodeReport {
  readonly name: string;
  /** Null: there are no routes to its pods. */
  readonly way: WayReport | null;
  /** Why not all of its pods are reached; null: they are. */
  readonly leftOut: string | null;
  /** Since when it stands so, RFC 3339; not before the agent's start. */
  readonly lastChange: string;
}

/** The ways to a node, in words. */
export const WAYS: Readonly<Record<PeerPlan['kind'], string>> = {
  direct: 'direct',
  tunnel: 'through the tunnel',
  wireguard: 'by WireGuard',
};

export interface WayReport {
  readonly mode: PeerPlan['kind'];
  /** Null: WireGuard needs none. */
  readonly gateway: string | null;
  /** Of the node. */
  readonly address: string;
  readonly podCidrs: readonly string[];
}

/** What the page tells of one node: the way to it, or why it was left out, and since when that is so. */
export function nodeReport(name: string, { plan, reason, changedAt }: DatedStanding): NodeReport {
  const lastChange = new Date(changedAt).toISOString();
  return { name, way: plan ? wayReport(plan) : null, leftOut: reason ?? null, lastChange };
}

function wayReport(plan: PeerPlan): WayReport {
  const { kind: mode, ranges } = plan;
  const gateway = plan.kind === 'wireguard' ? null : formatIp(plan.gateway);
  const address = plan.kind === 'direct' ? plan.gateway : plan.remote;
  return { mode, gateway, address: formatIp(address), podCidrs: ranges.map(formatCidr) };
}

/** Those somebody should do something about are told whatever the limit is. They may change while the page is written. */
export function* leftOutFirst(
  standings: ReadonlyMap<string, DatedStanding>,
): Iterable<readonly [string, DatedStanding]> {
  for (const entry of standings) if (entry[1].reason !== undefined) yield entry;
  for (const entry of standings) if (entry[1].reason === undefined) yield entry;
}
