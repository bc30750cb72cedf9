import { formatIp, type IpFamily, ipFromBytes, parseIp } from '../../../src/core/index.ts';

/** The addresses of the oracle's world, the same in both families. */
export interface OracleNetwork {
  readonly family: IpFamily;
  /** From where a client sends, besides the node. */
  readonly sources: readonly Uint8Array[];
  /** The last one is the node's own. */
  readonly destinations: readonly Uint8Array[];
  /** Lengths of prefixes that tell some of them from others. */
  readonly prefixes: readonly number[];
  /** The node's ends of the two links, and the others' ends. */
  readonly links: Readonly<Record<'in' | 'out', { readonly node: string; readonly other: string }>>;
  readonly linkBits: number;
  /** Of the sources, behind link `in`; of the destinations, behind link `out`. */
  readonly ranges: { readonly sources: string; readonly destinations: string };
  /** What the ranges begin with, as text. */
  readonly behind: Readonly<Record<'in' | 'out', readonly string[]>>;
}

const bytes = (text: string) => parseIp(text).bytes;

export const NETWORKS: Readonly<Record<IpFamily, OracleNetwork>> = {
  IPv4: {
    family: 'IPv4',
    sources: ['10.7.0.5', '10.7.1.6', '10.7.128.7'].map(bytes),
    destinations: ['10.8.0.10', '10.8.0.11', '10.8.77.12', '10.9.1.1'].map(bytes),
    prefixes: [8, 16, 30],
    links: { in: { node: '10.9.1.1', other: '10.9.1.2' }, out: { node: '10.9.2.1', other: '10.9.2.2' } },
    linkBits: 24,
    ranges: { sources: '10.7.0.0/16', destinations: '10.8.0.0/16' },
    behind: { in: ['10.7.', '10.9.1.'], out: ['10.8.', '10.9.2.'] },
  },
  IPv6: {
    family: 'IPv6',
    sources: ['fd07::5', 'fd07:1::6', 'fd07:8000::7'].map(bytes),
    destinations: ['fd08::10', 'fd08::11', 'fd08:77::12', 'fd09:1::1'].map(bytes),
    prefixes: [8, 16, 126],
    links: { in: { node: 'fd09:1::1', other: 'fd09:1::2' }, out: { node: 'fd09:2::1', other: 'fd09:2::2' } },
    linkBits: 64,
    ranges: { sources: 'fd07::/16', destinations: 'fd08::/16' },
    behind: { in: ['fd07:', 'fd09:1:'], out: ['fd08:', 'fd09:2:'] },
  },
};

export function textOf(address: Uint8Array): string {
  return formatIp(ipFromBytes(address));
}

/** Where headers have what packets are compared by. */
export const HEADER: Readonly<
  Record<IpFamily, { readonly source: number; readonly destination: number; readonly length: number }>
> = {
  IPv4: { source: 12, destination: 16, length: 4 },
  IPv6: { source: 8, destination: 24, length: 16 },
};
