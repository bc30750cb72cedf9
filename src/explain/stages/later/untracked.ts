import type { NodeView } from '../../node/index.ts';
import type { Goal } from '../asked.ts';
import type { Finding } from '../report.ts';

/** Why what IPVS sends is not masqueraded, whatever rules want (ip_vs_notrack, <net/ip_vs.h>); undefined: it may be. */
export function untrackedByIpvs(
  { byIpvs }: Pick<Goal, 'byIpvs'>,
  node: NodeView,
): Required<Pick<Finding, 'text' | 'remedy'>> | undefined {
  if (!byIpvs || node.sysctl('net/ipv4/vs/conntrack') !== '0') return undefined;
  const text = 'net.ipv4.vs.conntrack is 0, so that nothing IPVS sends is masqueraded';
  return { text, remedy: ['sysctl -w net.ipv4.vs.conntrack=1'] };
}
