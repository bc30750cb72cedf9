import {
  errorText,
  formatCidr,
  formatIp,
  IP_FAMILIES,
  type IpAddress,
  type IpFamily,
  type Steps,
} from '../../../core/index.ts';
import { withNetlink } from '../../../netlink/index.ts';
import { NETLINK_ROUTE } from '../../../netlink/uapi/index.ts';
import { type DatedStanding, type PeerPlan, readKernelPeers } from '../../../routes/index.ts';
import { leftOutFirst, nodeReport, WAYS } from '../../routes/report.ts';
import { type PeerReport, STATUS_LIMITS } from '../status.ts';
import type { PeerFacts, PeerFamily } from './facts.ts';

/** What the kernel says against the way to a gateway, by its text; `dead` is undefined where it says nothing. */
type Reach = (family: IpFamily, gateway: string) => string | undefined;

/**
 * How it stands with the pods of other nodes: what the agent wants, and whether the kernel can reach the next machine.
 *
 * @param now calendar time in milliseconds, as the standings have it
 */
export function* peerFacts(families: readonly PeerFamily[], now: number): Steps<PeerFacts> {
  const problems: string[] = [];
  const wrong: PeerReport[] = [];
  const right: PeerReport[] = [];
  let total = 0;
  let wrongTotal = 0;
  let last = Number.NEGATIVE_INFINITY;
  // A family that the cluster does not use waits for ever, and nobody misses it.
  const isServed = families.some(({ problem }) => problem === undefined);
  for (const { family, problem, standings } of families) {
    if (problem !== undefined && (standings.size > 0 || !isServed)) problems.push(`${family}: ${problem}`);
    total += standings.size;
    const looked = standings.size <= STATUS_LIMITS.peersLookedAt ? reachOrNothing(problems) : () => undefined;
    yield;
    for (const [name, standing] of leftOutFirst(standings)) {
      yield;
      last = Math.max(last, standing.changedAt);
      const against = standing.reason ?? (standing.plan && looked(family, formatIp(nextOf(standing.plan))));
      if (against !== undefined) wrongTotal++;
      const list = against === undefined ? right : wrong;
      if (list.length < STATUS_LIMITS.peers) list.push(peerReport(family, name, standing, against));
    }
  }
  return {
    total,
    wrong: wrongTotal,
    peers: [...wrong, ...right].slice(0, STATUS_LIMITS.peers),
    problems,
    ageSeconds: Number.isFinite(last) ? Math.max(0, now - last) / 1000 : null,
  };
}

function peerReport(family: IpFamily, name: string, standing: DatedStanding, problem: string | undefined): PeerReport {
  const { way, lastChange } = nodeReport(name, standing);
  const { plan } = standing;
  return {
    node: name,
    family,
    way: way ? `${WAYS[way.mode]} ${way.mode === 'direct' ? 'via' : 'to'} ${way.address}` : '',
    podCidrs: plan ? plan.ranges.map(formatCidr) : [],
    problem: problem ?? null,
    lastChange,
  };
}

/** The next machine on the way; WireGuard has no gateway, and is asked by the node's own address. */
function nextOf(plan: PeerPlan): IpAddress {
  return plan.kind === 'wireguard' ? plan.remote : plan.gateway;
}

/** The kernel is asked once, when the first peer is looked at. */
function kernelReach(): Reach {
  const against = withNetlink(NETLINK_ROUTE, (netlink) => {
    const found = new Map<string, string>();
    for (const family of IP_FAMILIES) {
      for (const { gateway, address, reach } of readKernelPeers(netlink, family).peers) {
        const next = gateway ?? address;
        if (next && reach.verdict === 'no') found.set(`${family} ${formatIp(next)}`, reach.because);
      }
    }
    return found;
  });
  return (family, gateway) => against.get(`${family} ${gateway}`);
}

function reachOrNothing(problems: string[]): Reach {
  try {
    return kernelReach();
  } catch (error) {
    problems.push(errorText(error));
    return () => undefined;
  }
}
