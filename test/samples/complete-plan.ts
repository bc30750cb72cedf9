import { type IpFamily, parseCidr, parseIp } from '../../src/core/index.ts';
import type { NodePlan, Plan } from '../../src/proxy/index.ts';
import { sampleNode, samplePlan, samplePort } from './sample-plan.ts';

/**
 * A plan with every form of rule there is: the addresses are IPv4 or IPv6 by family, the Services the same. Enough of
 * them share a block for the trees to have chains.
 */
export function completePlan(family: IpFamily, overrides: Partial<NodePlan> = {}): Plan {
  const v4 = family === 'IPv4';
  const vip = (n: number) => (v4 ? `10.96.10.${n}` : `fd00:10:96::${n.toString(16)}`);
  const outer = (n: number) => (v4 ? `203.0.113.${n}` : `2001:db8::${n.toString(16)}`);
  const pod = (n: number) => (v4 ? `10.244.1.${n}:8080` : `[fd00:10:244::${n.toString(16)}]:8080`);
  const far = (n: number) => (v4 ? `10.244.2.${n}:8080` : `[fd00:10:245::${n.toString(16)}]:8080`);
  const ranges = v4 ? ['198.18.0.0/15', '192.168.0.7/32'] : ['2001:db8:1::/48', 'fd00:192:168::7/128'];
  const node = sampleNode({
    localDetector: { kind: 'cidr', cidr: parseCidr(v4 ? '10.244.0.0/16' : 'fd00:10:244::/48') },
    nodeIp: parseIp(v4 ? '192.168.0.7' : 'fd00:192:168::7'),
    podCidrs: [parseCidr(v4 ? '10.244.1.0/24' : 'fd00:10:244::/64')],
    ...overrides,
  });
  const local = { externalPolicy: 'Local' } as const;
  return samplePlan(family, node, [
    samplePort({ name: 'shop/web:http', clusterIp: vip(1), local: [pod(10)], remote: [far(10), far(11)] }),
    samplePort({ name: 'shop/web:dns', protocol: 'UDP', clusterIp: vip(1), port: 53, local: [pod(10)] }),
    samplePort({
      name: 'shop/sctp',
      protocol: 'SCTP',
      clusterIp: vip(1),
      port: 99,
      remote: [far(10)],
      nodePort: 30099,
    }),
    samplePort({ name: 'shop/empty', clusterIp: vip(2), nodePort: 30002, externalIps: [outer(2)] }),
    samplePort({ name: 'shop/np', clusterIp: vip(3), nodePort: 30003, local: [pod(20)], remote: [far(20)] }),
    samplePort({
      name: 'shop/lb',
      clusterIp: vip(4),
      port: 443,
      nodePort: 30443,
      remote: [far(30)],
      loadBalancerVips: [outer(44)],
      sourceRanges: ranges,
      externalIps: [outer(45)],
    }),
    samplePort({
      name: 'shop/lb-local',
      clusterIp: vip(5),
      nodePort: 30005,
      loadBalancerVips: [outer(55)],
      ...local,
      healthCheckNodePort: 30999,
      local: [pod(40)],
      remote: [far(40)],
    }),
    samplePort({
      name: 'shop/lb-far',
      clusterIp: vip(6),
      nodePort: 30006,
      externalIps: [outer(6)],
      ...local,
      remote: [far(50)],
    }),
    samplePort({ name: 'shop/int', clusterIp: vip(7), internalPolicy: 'Local', local: [pod(60)], remote: [far(60)] }),
    samplePort({ name: 'shop/int-far', clusterIp: vip(8), internalPolicy: 'Local', remote: [far(70)] }),
    samplePort({
      name: 'shop/sticky',
      clusterIp: vip(9),
      affinitySeconds: 600,
      nodePort: 30009,
      ...local,
      local: [pod(80)],
      remote: [far(80)],
    }),
    // Many ports at one address, and refused ones too: the trees go on below the address.
    ...Array.from({ length: 12 }, (_, n) =>
      samplePort({ name: `many/ports:p${n}`, clusterIp: vip(200), port: 8000 + 7 * n, remote: [far(90)] }),
    ),
    ...Array.from({ length: 9 }, (_, n) =>
      samplePort({ name: `many/idle:p${n}`, clusterIp: vip(201), port: 9000 + n, nodePort: 31000 + n }),
    ),
    ...Array.from({ length: 9 }, (_, n) =>
      samplePort({
        name: `many/pods:p${n}`,
        clusterIp: vip(100 + n),
        nodePort: 32000 + 100 * n,
        local: [pod(100 + n)],
      }),
    ),
  ]);
}
