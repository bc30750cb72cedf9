import { parseCidr } from '../../../core/index.ts';
import { tableLines } from '../../text-table.ts';
import type { IpamCheck } from './ipam.ts';
import { type IpamReport, NOT_WITHOUT_CNI } from './ipam-report.ts';

/** What `nodeplane ipam` prints. */
export function ipamText({ node, pools, ranges }: IpamReport): string {
  const ofPools = pools.map((pool) => [pool.cidr, `/${pool.blockSize}`, pool.blocks, pool.free, pool.nodes]);
  const ofRanges = ranges.map(({ cidr, state, used = '?', free }) => [cidr, state, used, freeText(cidr, free)]);
  return [
    ...(pools.length > 0 ? [...tableOf(['POOL', 'BLOCK', 'BLOCKS', 'FREE', 'NODES'], ofPools), ''] : []),
    ranges.length > 0 ? `Node ${node}` : `Node ${node} has no range of pod addresses`,
    ...(ranges.length > 0 ? tableOf(['RANGE', 'STATE', 'USED', 'FREE'], ofRanges) : []),
    ...(ranges.some(({ used }) => used === undefined) ? ['', `?: ${NOT_WITHOUT_CNI}`] : []),
    '',
  ].join('\n');
}

/** Two columns of words, then numbers. */
function tableOf(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  return tableLines([head, ...rows.map((row) => row.map(String))], [2, 3, 4]);
}

/** Beyond what numbers hold exactly, the size of the range says it. */
function freeText(cidr: string, free: number | undefined): number | string {
  if (free === undefined) return '?';
  return free < Number.MAX_SAFE_INTEGER ? free : `2^${128 - parseCidr(cidr).prefixLength}`;
}

/** What `nodeplane ipam check` prints. */
export function ipamCheckText({ findings, notLookedAt }: IpamCheck): string {
  const lines = [
    ...findings.map(({ what, message, remedy }) => `${what} ${message}\n  to mend it: ${remedy}`),
    ...notLookedAt.map((text) => `Not looked at: ${text}`),
  ];
  return `${lines.join('\n') || 'All addresses are in order'}\n`;
}
