import { formatIp } from '../../core/index.ts';
import type { LinkChain } from '../../netlink/nftables/index.ts';
import type { Link } from '../../netlink/route/index.ts';
import type { NodeView } from '../node/index.ts';
import type { Asked, Goal } from './asked.ts';
import type { Report } from './report.ts';

// Chains of nf_tables that no walk knows, beside the hooks of the host: packets meet them on links (ingress, egress) and in bridges,
// and what asks by ARP for whom they are sent to meets its own. Filters of tc as well.

/** Says which of them are on the way, so that nothing can be told past them. */
export function lookAtLinkChains(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  const passed = linksPassed(asked, goals, node);
  lookAtFilters(passed, node, report);
  if (node.linkChains.length === 0) return;
  const names = new Set(passed.map(({ name }) => name));
  const isBridged = passed.some(({ bridgePort }) => bridgePort !== undefined);
  const isArp = asked.target.family === 'IPv4' && passed.length > 0;
  const met = node.linkChains.filter(({ family, links }) => {
    if (family === 'arp') return isArp;
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

/** Filters of tc, which may drop packets or send them elsewhere. */
function lookAtFilters(passed: readonly Link[], node: NodeView, report: Report): void {
  for (const link of new Set(passed)) {
    const kind = node.filterOn(link);
    if (kind === undefined) continue;
    const text = `packets on the way meet a filter of tc on ${link.name} (${kind}), which is not simulated`;
    const value = `tc filter show dev ${link.name} ingress; tc filter show dev ${link.name} egress`;
    report.cannotTell('others', text, [{ source: 'tc', object: link.name, value }]);
  }
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
