import { formatIp } from '../../core/index.ts';
import type { LinkChain } from '../../netlink/nftables/index.ts';
import type { Link } from '../../netlink/route/index.ts';
import type { NodeView } from '../node/index.ts';
import type { Asked, Goal } from './asked.ts';
import type { Report } from './report.ts';

// Chains of nf_tables that no walk knows: packets meet them on links (ingress, egress) and in bridges, beside the hooks of the host.

/** Says which of them are on the way, so that nothing can be told past them. */
export function lookAtLinkChains(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  if (node.linkChains.length === 0) return;
  const passed = linksPassed(asked, goals, node);
  const names = new Set(passed.map(({ name }) => name));
  const isBridged = passed.some(({ bridgePort }) => bridgePort !== undefined);
  const met = node.linkChains.filter(({ family, links }) => {
    if (family === 'arp') return asked.target.family === 'IPv4';
    return links ? [...names].some(isAmong(links)) : isBridged;
  });
  const [first] = met;
  if (!first) return;
  const text = `packets on the way meet ${placeOf(first)}${met.length > 1 ? ` and ${met.length - 1} more` : ''}, which is not simulated`;
  const { family, table, name } = first;
  report.cannotTell('others', text, [
    { source: 'nftables', object: placeOf(first), value: `nft list chain ${family} ${table} ${name}` },
  ]);
}

/** Those that packets come in or leave by, of this node. */
function linksPassed({ client }: Asked, goals: readonly Goal[], node: NodeView): readonly Link[] {
  const passed: (Link | undefined)[] = [];
  if (client.kind === 'pod') passed.push(client.pod.outside, client.pod.seenAs);
  if (client.kind === 'outside') passed.push(node.link(client.link.index));
  for (const { ip } of goals) {
    const pods = node.podsAt(formatIp(ip));
    for (const { outside, seenAs } of pods) passed.push(outside, seenAs);
    if (pods.length === 0 && !node.isOwnAddress(formatIp(ip))) passed.push(node.wayOut(ip)?.link);
  }
  return passed.filter((link) => link !== undefined);
}

function isAmong(links: readonly string[]): (name: string) => boolean {
  return (name) => links.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one));
}

function placeOf({ family, table, name, links }: LinkChain): string {
  const where = links ? `on ${links.slice(0, 3).join(', ')}` : family === 'arp' ? 'of ARP' : 'in bridges';
  return `table ${family} ${table}, chain ${name} (${where})`;
}
