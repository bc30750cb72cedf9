import { compareText, formatCidr, formatIp, IP_FAMILIES, type IpFamily } from '../../../core/index.ts';
import type { KernelPeer, KernelPeers, PeerPlan, Reach } from '../../../routes/index.ts';
import { type FamilyReport, type NodeReport, type RoutesReport, WAYS, type WayReport } from '../report.ts';

/** The pods of another node in one family, as the kernel reaches them. What the agent alone knows is null without one. */
export interface ShownPeer {
  readonly node: string | null;
  readonly family: IpFamily;
  readonly mode: PeerPlan['kind'];
  readonly device: string;
  /** Null: WireGuard needs none. */
  readonly gateway: string | null;
  /** Of the node. */
  readonly address: string | null;
  readonly podCidrs: readonly string[];
  readonly mtu: number;
  readonly lastChange: string | null;
  readonly reachable: Reach['verdict'];
  readonly because: string;
}

/** A Node with pods that are not, or not all, reached. */
export interface ShownLeftOut {
  readonly node: string;
  readonly family: IpFamily;
  readonly reason: string;
  readonly lastChange: string;
}

/** All that `nodeplane routes` shows. */
export interface ShownRoutes {
  /** Whether an agent was asked; without one, nothing is known of Nodes that have no routes. */
  readonly agent: boolean;
  readonly peers: readonly ShownPeer[];
  readonly leftOut: readonly ShownLeftOut[];
  /** In what the kernel is not as the agent means it to be, or not complete in itself, in words. */
  readonly drift: readonly string[];
  /** What keeps the agent from its work, in words. */
  readonly problems: readonly string[];
}

/** Puts together what the kernel holds and what the agent knows of it. */
export function shownRoutes(
  kernel: Readonly<Record<IpFamily, KernelPeers>>,
  report: RoutesReport | undefined,
): ShownRoutes {
  const told = (family: IpFamily) => report?.families.find((one) => one.family === family);
  // It keeps a tunnel for a while that other nodes may still send by.
  const mayKeepTunnel = report?.mode === 'host-gw';
  const each = IP_FAMILIES.map((family) => {
    const { peers, leftovers } = kernel[family];
    return ofFamily(family, { peers, leftovers: mayKeepTunnel ? [] : leftovers }, told(family));
  });
  const peers = each.flatMap((one) => one.peers);
  peers.sort(
    (a, b) =>
      compareText(a.node ?? '', b.node ?? '') || compareText(a.family, b.family) || compareText(hopOf(a), hopOf(b)),
  );
  return {
    agent: report !== undefined,
    peers,
    leftOut: each.flatMap((one) => one.leftOut),
    drift: each.flatMap((one) => one.drift),
    problems: report?.families.flatMap(problemsOf) ?? [],
  };
}

function problemsOf({ family, problem, total, nodes }: FamilyReport): string[] {
  return [
    ...(problem === null ? [] : [`${family}: ${problem}`]),
    ...(total > nodes.length
      ? [`${family}: ${nodes.length} of ${total} Nodes were told; the others have no names here`]
      : []),
  ];
}

function ofFamily(
  family: IpFamily,
  { peers, leftovers }: KernelPeers,
  told: FamilyReport | undefined,
): Pick<ShownRoutes, 'peers' | 'leftOut' | 'drift'> {
  const nodes = told?.nodes ?? [];
  const byHop = new Map(nodes.flatMap((node) => (node.way ? [[hopOf(node.way), node]] : [])));
  const present = new Set<string>();
  const drift = [...leftovers];
  const shown = peers.map((peer) => {
    const hop = hopOf(textsOf(peer));
    const node = byHop.get(hop);
    if (node) present.add(hop);
    // What the kernel refuses of a Node is told as left out.
    if (node?.way && node.leftOut !== null) return shownPeer(peer, node);
    if (node?.way) drift.push(...differences(node.name, node.way, peer));
    else if (told && told.nodes.length === told.total)
      drift.push(`${family}: no Node has routes via ${hop} dev ${peer.device}`);
    return shownPeer(peer, node);
  });
  for (const { name, way, leftOut } of nodes) {
    if (way && leftOut === null && !present.has(hopOf(way))) drift.push(`${name}: the ${family} routes are missing`);
  }
  const leftOut = nodes.flatMap(({ name, leftOut: reason, lastChange }) =>
    reason === null ? [] : [{ node: name, family, reason, lastChange }],
  );
  return { peers: shown, leftOut, drift };
}

/** What tells the ways to two nodes apart: the gateway, or with WireGuard the node's own address. */
function hopOf({ gateway, address }: Pick<ShownPeer, 'gateway' | 'address'>): string {
  return gateway ?? address ?? 'no node';
}

function textsOf({ gateway, address }: KernelPeer): Pick<ShownPeer, 'gateway' | 'address'> {
  return { gateway: gateway ? formatIp(gateway) : null, address: address ? formatIp(address) : null };
}

function shownPeer(peer: KernelPeer, node: NodeReport | undefined): ShownPeer {
  const { family, mode, device, podCidrs, mtu, reach } = peer;
  return {
    node: node?.name ?? null,
    family,
    mode,
    device,
    ...textsOf(peer),
    podCidrs: podCidrs.map(formatCidr),
    mtu,
    lastChange: node?.lastChange ?? null,
    reachable: reach.verdict,
    because: reach.because,
  };
}

/** In what the kernel has it otherwise than the agent. */
function differences(name: string, way: WayReport, { family, mode, address, podCidrs }: KernelPeer): string[] {
  const found: string[] = [];
  if (mode !== way.mode) found.push(`${name}: the ${family} routes are ${WAYS[mode]}, not ${WAYS[way.mode]}`);
  const where = address && formatIp(address);
  if (mode === way.mode && where !== way.address) {
    found.push(`${name}: the ${family} packets go to ${where ?? 'no node'}, not to ${way.address}`);
  }
  const present = new Set(podCidrs.map(formatCidr));
  const wanted = new Set(way.podCidrs);
  for (const cidr of wanted) if (!present.has(cidr)) found.push(`${name}: the route to ${cidr} is missing`);
  for (const cidr of present) if (!wanted.has(cidr)) found.push(`${name}: the route to ${cidr} is not the agent's`);
  return found;
}
