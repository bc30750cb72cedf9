import { createHash } from 'node:crypto';
import { formatIp } from '../src/core/index.ts';
import type { ServicePortPlan } from '../src/proxy/index.ts';

/**
 * The nat rules kube-proxy 1.36 writes for ClusterIP Services, as one iptables-restore input: one rule a Service in
 * KUBE-SERVICES, one chain a Service, one chain an endpoint. Names need only be unique, not kube-proxy's own.
 *
 * @param touched a partial sync: all of KUBE-SERVICES as ever, but only the chains of this Service
 */
export function upstreamLayout(ports: Iterable<ServicePortPlan>, touched?: ServicePortPlan): string {
  const chains: string[] = [];
  const rules: string[] = [];
  for (const { key: portKey, name, clusterIp, port, clusterEndpoints } of ports) {
    const service = `KUBE-SVC-${hash(name)}`;
    const destination = `-m comment --comment "${name} cluster IP" -m tcp -p tcp -d ${formatIp(clusterIp)} --dport ${port}`;
    rules.push(`-A KUBE-SERVICES ${destination} -j ${service}`);
    if (touched && portKey !== touched.key) continue;
    chains.push(service);
    rules.push(`-A ${service} ${destination} ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ`);
    clusterEndpoints.forEach(({ ip, key }, index) => {
      const endpoint = `KUBE-SEP-${hash(name + key)}`;
      const left = clusterEndpoints.length - index;
      const chance = left > 1 ? `-m statistic --mode random --probability ${(1 / left).toFixed(10)} ` : '';
      chains.push(endpoint);
      rules.push(`-A ${service} ${chance}-j ${endpoint}`);
      rules.push(`-A ${endpoint} -s ${formatIp(ip)} -j KUBE-MARK-MASQ`);
      rules.push(`-A ${endpoint} -m tcp -p tcp -j DNAT --to-destination ${key}`);
    });
  }
  const declared = ['KUBE-SERVICES', 'KUBE-MARK-MASQ', ...chains].map((chain) => `:${chain} - [0:0]`);
  return ['*nat', ...declared, ...rules, 'COMMIT', ''].join('\n');
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16).toUpperCase();
}
