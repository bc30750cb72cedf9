import { IP_PROTOCOLS, type IpFamily } from '../core/index.ts';
import { cmp, type Expression, meta } from '../netlink/nftables/index.ts';

/**
 * Rules that refuse every packet, each in its way. TCP by a reset, because Linux sends one client six ICMP errors at once and
 * then one a second (icmp_ratelimit): of many refused connections most would wait for their SYN to be repeated. Other
 * protocols by ICMP port unreachable.
 */
export function rejections(family: IpFamily): readonly (readonly Expression[])[] {
  // ICMP_PORT_UNREACH, ICMPV6_PORT_UNREACH
  const code = family === 'IPv4' ? 3 : 4;
  return [
    [meta('l4proto'), cmp.equal(Uint8Array.of(IP_PROTOCOLS.TCP)), { kind: 'reject', type: 'tcp-reset' }],
    [{ kind: 'reject', type: 'icmp', code }],
  ];
}
