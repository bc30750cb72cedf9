import { NodeplaneError } from '../../../core/index.ts';
import type { NftReader } from '../../../netlink/nftables/index.ts';
import type { PodPackets } from './packets.ts';
import { type ReadLimits, type Refusal, refusalsOf } from './refusals.ts';

/**
 * What one look reads at most: an ADD of the plugin alone waits for it, and in the agent the event loop does. 90 chains
 * of five rules took 14 ms, 9,000 rules 200; what firewalld leads forwarded packets through is a few dozen.
 */
const LIMITS: ReadLimits = { rules: 200, chains: 30, bytes: 200_000 };

/**
 * A sentence for each chain that may drop these packets and cannot be changed from here: of iptables-nft, of other programs' tables, of
 * legacy iptables.
 *
 * @throws KernelError, ERR_NETLINK_DUMP_INTERRUPTED
 */
export function obstaclesTo(ruleset: NftReader, packets: readonly PodPackets[]): string[] {
  return refusalsOf(ruleset, packets, LIMITS)
    .filter((refusal) => !isOpened(refusal))
    .map(sentence);
}

/**
 * Whether pods are let through there all the same: a refusal of iptables-nft's FORWARD itself is none, as the jump to our rules is put
 * before it. Firewalls refuse by chains of their own what FORWARD leads there before it leads packets to rules of ours.
 */
export function isOpened({ owner, base, chain }: Refusal): boolean {
  return owner === 'iptables-nft' && chain === base;
}

/**
 * What is only told may be left untold: other ADDs, for one, change the ruleset all the time while many pods start together. Undefined
 * then.
 */
export function unlessChanging(tell: () => string[]): string[] | undefined {
  try {
    return tell();
  } catch (error) {
    if (error instanceof NodeplaneError && error.code === 'ERR_NETLINK_DUMP_INTERRUPTED') return undefined;
    throw error;
  }
}

function sentence({ owner, family, table, base, chain }: Refusal): string {
  const ipFamily = family === 'ip6' ? 'IPv6' : 'IPv4';
  if (owner === 'iptables-legacy') {
    return `Chain FORWARD of legacy iptables (${ipFamily}) drops what it does not accept itself, and cannot be changed by netlink; have it accept the pods' addresses or use iptables-nft`;
  }
  if (owner === 'iptables-nft') {
    return `Chain FORWARD of iptables-nft (${ipFamily}) leads what it does not accept before to chain "${chain}", which refuses it; have the firewall that made it accept the pods' addresses`;
  }
  const place = `Chain "${chain}" of the nftables table "${family} ${table}"`;
  return chain === base
    ? `${place} drops what it does not accept itself; have it accept the pods' addresses`
    : `${place} refuses packets of pods; have the firewall that made it accept the pods' addresses (nodeplane preflight names its commands)`;
}
