import type { IpFamily } from '../../core/index.ts';

/** The target that gives a packet an address of this node as source, and a port that is hard to guess. */
export const MASQUERADE = '-j MASQUERADE --random-fully';

/**
 * The target that tells a client at once that nobody serves: TCP by a reset, other protocols by ICMP port unreachable.
 *
 * Not ICMP for TCP too, as kube-proxy does: Linux sends one client six ICMP errors at once and then one a second
 * (icmp_ratelimit), so of many refused connections most would wait for their SYN to be repeated.
 *
 * @param protocol the rule matches no other: iptables takes a reset only where `-p tcp` is given
 */
export function refuse(family: IpFamily, protocol: string): string {
  const icmp = family === 'IPv4' ? 'icmp-port-unreachable' : 'icmp6-port-unreachable';
  return `-j REJECT --reject-with ${protocol === 'tcp' ? 'tcp-reset' : icmp}`;
}
