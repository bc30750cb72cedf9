import { createHash } from 'node:crypto';
import { formatIp, protocolWord } from '../src/core/index.ts';
import type { ServicePortPlan } from '../src/proxy/index.ts';

/**
 * The nat rules kube-proxy 1.36 writes for ClusterIP and NodePort Services, as one iptables-restore input: one rule a Service in
 * KUBE-SERVICES, one chain a Service, one chain an endpoint; with a NodePort one more rule and chain. Names need only be
 * unique, not kube-proxy's own.
 *
 * @param touched a partial sync: all of KUBE-SERVICES as ever, but only the chains of this Service
 */
export function upstreamLayout(ports: Iterable<ServicePortPlan>, touched?: ServicePortPlan): string {
  const chains: string[] = [];
  const rules: string[] = [];
  const nodePorts: string[] = [];
  for (const { key: portKey, name, protocol, clusterIp, port, nodePort, clusterEndpoints } of ports) {
    const service = `KUBE-SVC-${hash(name)}`;
    const external = `KUBE-EXT-${hash(name)}`;
    const transport = `-m ${protocolWord(protocol)} -p ${protocolWord(protocol)}`;
    const destination = `-m comment --comment "${name} cluster IP" ${transport} -d ${formatIp(clusterIp)} --dport ${port}`;
    rules.push(`-A KUBE-SERVICES ${destination} -j ${service}`);
    if (nodePort) {
      nodePorts.push(
        `-A KUBE-NODEPORTS -m comment --comment ${name} ${transport} -d 127.0.0.0/8 --dport ${nodePort} -j ${external}`,
        `-A KUBE-NODEPORTS -m comment --comment ${name} ${transport} --dport ${nodePort} -j ${external}`,
      );
    }
    if (touched && portKey !== touched.key) continue;
    chains.push(service);
    rules.push(`-A ${service} ${destination} ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ`);
    if (nodePort) {
      chains.push(external);
      const why = `-m comment --comment "masquerade traffic for ${name} external destinations"`;
      rules.push(`-A ${external} ${why} -j KUBE-MARK-MASQ`, `-A ${external} -j ${service}`);
    }
    clusterEndpoints.forEach(({ ip, key }, index) => {
      const endpoint = `KUBE-SEP-${hash(name + key)}`;
      const left = clusterEndpoints.length - index;
      const chance = left > 1 ? `-m statistic --mode random --probability ${(1 / left).toFixed(10)} ` : '';
      chains.push(endpoint);
      rules.push(`-A ${service} ${chance}-j ${endpoint}`);
      rules.push(`-A ${endpoint} -s ${formatIp(ip)} -j KUBE-MARK-MASQ`);
      rules.push(`-A ${endpoint} ${transport} -j DNAT --to-destination ${key}`);
    });
  }
  if (nodePorts.length > 0) {
    chains.push('KUBE-NODEPORTS');
    rules.push(...nodePorts, '-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS');
  }
  const declared = ['KUBE-SERVICES', 'KUBE-MARK-MASQ', ...chains].map((chain) => `:${chain} - [0:0]`);
  return ['*nat', ...declared, ...rules, 'COMMIT', ''].join('\n');
}

/** What kube-proxy has beside them, so that packets meet them: the ways into its chains, marks and masquerading, and table filter. */
export const UPSTREAM_HOOKS = `*filter
:KUBE-SERVICES - [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
-A INPUT -j KUBE-FIREWALL
-A INPUT -m conntrack --ctstate NEW -j KUBE-PROXY-FIREWALL
-A INPUT -j KUBE-NODEPORTS
-A INPUT -m conntrack --ctstate NEW -j KUBE-EXTERNAL-SERVICES
-A FORWARD -m conntrack --ctstate NEW -j KUBE-PROXY-FIREWALL
-A FORWARD -j KUBE-FORWARD
-A FORWARD -m conntrack --ctstate NEW -j KUBE-SERVICES
-A FORWARD -m conntrack --ctstate NEW -j KUBE-EXTERNAL-SERVICES
-A OUTPUT -j KUBE-FIREWALL
-A OUTPUT -m conntrack --ctstate NEW -j KUBE-PROXY-FIREWALL
-A OUTPUT -m conntrack --ctstate NEW -j KUBE-SERVICES
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
COMMIT
*nat
:KUBE-POSTROUTING - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A OUTPUT -j KUBE-SERVICES
-A POSTROUTING -j KUBE-POSTROUTING
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -j MASQUERADE --random-fully
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
COMMIT
`;

/**
 * The same with its chains in the order of their names. iptables-nft keeps them so and looks for each one's place among those
 * before it: with 10,000 chains that takes it 7 s, and 21 s in another order.
 */
export function inOrderOfChains(layout: string): string {
  const lines = layout.split('\n');
  const isChain = (line: string) => line.startsWith(':');
  const chains = lines.filter(isChain).sort();
  let next = 0;
  return lines.map((line) => (isChain(line) ? chains[next++] : line)).join('\n');
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16).toUpperCase();
}
