import { hash } from 'node:crypto';
import type { GeneratedPrefix, Table } from '../rules/index.ts';

// Chain names are kube-proxy's wherever the chain does what kube-proxy's does, so that tools and people find them.

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** The first 16 characters of the base32 (RFC 4648) of SHA-256: how kube-proxy makes names that fit into 28 characters. */
export function hash16(text: string): string {
  const digest = hash('sha256', text, 'buffer');
  let result = '';
  let bits = 0;
  let value = 0;
  for (let i = 0; result.length < 16; ) {
    if (bits < 5) {
      value = ((value & 0x1f) << 8) | digest[i++]!;
      bits += 8;
    }
    bits -= 5;
    result += BASE32[(value >> bits) & 0x1f];
  }
  return result;
}

/** The chains of one Service port. */
export interface ServiceChainNames {
  /** Balances over the endpoints of policy Cluster. */
  readonly cluster: string;
  /** Balances over the endpoints of policy Local. */
  readonly local: string;
  /** Where traffic from outside enters: NodePort, external and load-balancer addresses. */
  readonly external: string;
  /** Lets only the load balancer's source ranges pass. */
  readonly firewall: string;
}

/** @param name the port as kube-proxy writes it, `ns/name:port`; @param protocol in lower case */
export function serviceChainNames(name: string, protocol: string): ServiceChainNames {
  const hash = hash16(name + protocol);
  return {
    cluster: `KUBE-SVC-${hash}`,
    local: `KUBE-SVL-${hash}`,
    external: `KUBE-EXT-${hash}`,
    firewall: `KUBE-FW-${hash}`,
  };
}

/** @param endpoint `ip:port`, IPv6 in brackets */
export function endpointChainName(name: string, protocol: string, endpoint: string): string {
  return `KUBE-SEP-${hash16(name + protocol + endpoint)}`;
}

/**
 * Chain prefixes of the dispatch trees. Those in table nat are kube-proxy's own: it deletes stale chains of its five
 * prefixes in the restore that brings its rules, so a node can go back to kube-proxy while ours are in place. Under
 * other names they would go on leading to KUBE-SVC-… chains, and the kernel would refuse kube-proxy to delete those.
 */
export const TREE_PREFIX = {
  serviceVips: 'KUBE-SVC-',
  nodePorts: 'KUBE-EXT-',
  refusedVips: 'KUBE-VIP-',
  refusedExternalVips: 'KUBE-XIP-',
  refusedNodePorts: 'KUBE-XNP-',
  restrictedVips: 'KUBE-LBF-',
  healthChecks: 'KUBE-HC-',
} as const satisfies Record<string, GeneratedPrefix>;

/** The table a tree is in. */
export const TREE_TABLE = {
  serviceVips: 'nat',
  nodePorts: 'nat',
  refusedVips: 'filter',
  refusedExternalVips: 'filter',
  refusedNodePorts: 'filter',
  restrictedVips: 'filter',
  healthChecks: 'filter',
} as const satisfies Record<keyof typeof TREE_PREFIX, Table>;

/** Where rules are tried out that may be refused; no packet comes here. Named so that what is left of it is stale. */
export const PROBE_CHAIN = 'KUBE-SVC-PROBE';

/** Finds pods that reached themselves; named so that kube-proxy sweeps it with its stale endpoint chains. */
export const HAIRPIN_CHAIN = 'KUBE-SEP-HAIRPIN';

/** The chains packets enter by, in each table. All are kube-proxy's but the last of nat. */
export const ENTRY_CHAINS = {
  filter: ['KUBE-SERVICES', 'KUBE-EXTERNAL-SERVICES', 'KUBE-FORWARD', 'KUBE-NODEPORTS', 'KUBE-PROXY-FIREWALL'],
  nat: ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ', HAIRPIN_CHAIN],
} as const satisfies Record<Table, readonly string[]>;

/** A chain kube-proxy keeps in mangle, nat and filter to notice when somebody flushes the tables. */
export const CANARY_CHAIN = 'KUBE-PROXY-CANARY';
