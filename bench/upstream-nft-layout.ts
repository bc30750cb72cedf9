import { formatIp, protocolWord } from '../src/core/index.ts';
import type { ServicePortPlan } from '../src/proxy/index.ts';

/**
 * What kube-proxy 1.36 has for ClusterIP and NodePort Services in mode nftables, as text for `nft -f`: one chain with one
 * anonymous map a Service, one element in the map of Services; with a NodePort one more of both. Names need only be
 * unique, not kube-proxy's own. Some Services after others make the same rules.
 */
export function upstreamNftLayout(ports: readonly ServicePortPlan[]): string {
  const lines = [
    'add table ip kube-proxy',
    'add set ip kube-proxy cluster-ips { type ipv4_addr ; }',
    'add map ip kube-proxy service-ips { type ipv4_addr . inet_proto . inet_service : verdict ; }',
    'add map ip kube-proxy service-nodeports { type inet_proto . inet_service : verdict ; }',
    'add chain ip kube-proxy services',
  ];
  for (const { name, protocol, clusterIp, port, nodePort, clusterEndpoints } of ports) {
    const chain = `service-${name.replace(':', '/')}`;
    const external = `external-${name.replace(':', '/')}`;
    const transport = protocolWord(protocol);
    const ip = formatIp(clusterIp);
    const endpoints = clusterEndpoints.map(
      (endpoint, index) => `${index} : ${formatIp(endpoint.ip)} . ${endpoint.port}`,
    );
    lines.push(
      `add chain ip kube-proxy ${chain}`,
      `add rule ip kube-proxy ${chain} meta l4proto ${transport} dnat ip addr . port to numgen random mod ${endpoints.length} map { ${endpoints.join(' , ')} }`,
      `add element ip kube-proxy cluster-ips { ${ip} }`,
      `add element ip kube-proxy service-ips { ${ip} . ${transport} . ${port} : goto ${chain} }`,
    );
    if (nodePort) {
      lines.push(
        `add chain ip kube-proxy ${external}`,
        `add rule ip kube-proxy ${external} meta mark set meta mark | 0x4000`,
        `add rule ip kube-proxy ${external} goto ${chain}`,
        `add element ip kube-proxy service-nodeports { ${transport} . ${nodePort} : goto ${external} }`,
      );
    }
  }
  return `${lines.join('\n')}\n`;
}

/**
 * What kube-proxy has beside them, so that packets meet them. To be loaded after the Services.
 *
 * @param nodeIp where NodePorts answer
 */
export function upstreamNftHooks(nodeIp: string): string {
  return `table ip kube-proxy {
  set nodeport-ips { type ipv4_addr; elements = { ${nodeIp} } }
  set hairpin-connections { type ipv4_addr . ipv4_addr . inet_proto . inet_service; }
  map no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict; }
  map no-endpoint-nodeports { type inet_proto . inet_service : verdict; }
  map firewall-ips { type ipv4_addr . inet_proto . inet_service : verdict; }
  chain firewall-check { ip daddr . meta l4proto . th dport vmap @firewall-ips; }
  chain service-endpoints-check { ip daddr . meta l4proto . th dport vmap @no-endpoint-services; }
  chain nodeport-endpoints-check { ip daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports; }
  chain cluster-ips-check { ip daddr @cluster-ips reject; ip daddr 10.96.0.0/12 drop; }
  chain masquerading {
    meta mark & 0x4000 != 0 meta mark set meta mark ^ 0x4000 masquerade fully-random
    ct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random
  }
  chain filter-prerouting-pre-dnat { type filter hook prerouting priority dstnat - 10; ct state new jump firewall-check; }
  chain filter-output-pre-dnat { type filter hook output priority -110; ct state new jump firewall-check; }
  chain filter-input {
    type filter hook input priority filter
    ct state new jump nodeport-endpoints-check
    ct state new jump service-endpoints-check
  }
  chain filter-forward {
    type filter hook forward priority filter
    ct state new jump service-endpoints-check
    ct state new jump cluster-ips-check
  }
  chain filter-output {
    type filter hook output priority filter
    ct state new jump service-endpoints-check
    ct state new jump cluster-ips-check
  }
  chain nat-prerouting { type nat hook prerouting priority dstnat; jump services; }
  chain nat-output { type nat hook output priority -100; jump services; }
  chain nat-postrouting { type nat hook postrouting priority srcnat; jump masquerading; }
}
add rule ip kube-proxy services ip daddr @cluster-ips ip saddr != 10.244.0.0/16 meta mark set meta mark | 0x4000
add rule ip kube-proxy services ip daddr . meta l4proto . th dport vmap @service-ips
add rule ip kube-proxy services ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
`;
}
