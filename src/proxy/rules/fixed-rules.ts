import { addressBits, formatIp, type IpFamily } from '../../core/index.ts';
import { type NodePlan, translatedNodePortAddresses } from '../index.ts';
import type { RuleParts } from './rule.ts';

// The rules that do not depend on Services and that modes iptables and ipvs have alike.

/** The target that gives a packet an address of this node as source, and a port that is hard to guess. */
export const MASQUERADE = '-j MASQUERADE --random-fully';

/**
 * The target that tells a client at once that nobody serves: TCP by a reset, other protocols by ICMP port unreachable.
 *
 * Not ICMP for TCP too, as kube-proxy does, for the reason that src/nft/rejections.ts gives.
 *
 * @param protocol the rule matches no other: iptables takes a reset only where `-p tcp` is given
 */
export function refuse(family: IpFamily, protocol: string): string {
  const icmp = family === 'IPv4' ? 'icmp-port-unreachable' : 'icmp6-port-unreachable';
  return `-j REJECT --reject-with ${protocol === 'tcp' ? 'tcp-reset' : icmp}`;
}

/** The bit of a packet's firewall mark that asks for masquerading, as rules speak of it. */
export interface MarkText {
  /** A match: packets that carry it. */
  readonly isSet: string;
  /** A match: packets that do not. */
  readonly isUnset: string;
  /** A target. */
  readonly set: string;
  /** A target, for packets that carry it: the mark becomes (mark & ~0x0) ^ bit (mark_tg of net/netfilter/xt_mark.c). */
  readonly clear: string;
}

/** @param masqueradeMark the mark with that bit alone, as in `NodePlan` */
export function markText(masqueradeMark: number): MarkText {
  const bit = `0x${masqueradeMark.toString(16)}`;
  return {
    isSet: `-m mark --mark ${bit}/${bit}`,
    isUnset: `-m mark ! --mark ${bit}/${bit}`,
    set: `-j MARK --set-xmark ${bit}/${bit}`,
    clear: `-j MARK --set-xmark ${bit}/0x0`,
  };
}

/** KUBE-FORWARD lets through what a Service has led elsewhere, and what belongs to connections that are under way. */
export function acceptForwarded({ isSet }: MarkText): RuleParts[] {
  return [
    { comment: 'kubernetes forwarding rules', match: isSet, target: '-j ACCEPT' },
    {
      comment: 'kubernetes forwarding conntrack rule',
      match: '-m conntrack --ctstate RELATED,ESTABLISHED',
      target: '-j ACCEPT',
    },
  ];
}

/** The end of KUBE-POSTROUTING masquerades what carries the mark. */
export function masqueradeMarked({ isUnset, clear }: MarkText): RuleParts[] {
  return [
    { match: isUnset, target: '-j RETURN' },
    // Cleared, so that a packet that passes here again (a tunnel's outer packet) is not masqueraded again.
    { target: clear },
    { comment: 'kubernetes service traffic requiring SNAT', target: MASQUERADE },
  ];
}

/** What leads from KUBE-SERVICES to the NodePorts: packets to the addresses that answer on them. */
export function nodePortEntry(
  family: IpFamily,
  node: NodePlan,
  to: Pick<RuleParts, 'comment' | 'target'>,
): readonly RuleParts[] {
  const addresses = translatedNodePortAddresses(family, node);
  if (addresses === 'all') {
    // Loopback addresses have a stand-in: a packet to them would not survive the way to an endpoint.
    const destination = family === 'IPv4' ? '! -d 127.0.0.0/8' : '! -d ::1/128';
    return [{ destination, match: '-m addrtype --dst-type LOCAL', ...to }];
  }
  return addresses.map((ip) => ({ destination: `-d ${formatIp(ip)}/${addressBits(family)}`, ...to }));
}
