/**
 * Whether IPVS has answers to others routed anew once it has translated them (ip_vs_route_me_harder, net/netfilter/ipvs/ip_vs_core.c).
 *
 * @param sysctl the node's
 */
export function reroutesAnswers(sysctl: (name: string) => string | undefined): boolean {
  return sysctl('net/ipv4/vs/snat_reroute') !== '0';
}
