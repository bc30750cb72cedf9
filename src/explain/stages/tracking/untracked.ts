import type { NodeView } from '../../node/index.ts';
import type { Goal } from '../asked.ts';

/** Why what IPVS sends is not masqueraded, whatever rules want; undefined: it may be. */
export function untrackedByIpvs(
  { byIpvs }: Goal,
  node: NodeView,
): { readonly text: string; readonly remedy: readonly string[] } | undefined {
  if (!byIpvs || node.sysctl('net/ipv4/vs/conntrack') !== '0') return undefined;
  const text = 'net.ipv4.vs.conntrack is 0, so that nothing IPVS sends is masqueraded';
  return { text, remedy: ['sysctl -w net.ipv4.vs.conntrack=1'] };
}
