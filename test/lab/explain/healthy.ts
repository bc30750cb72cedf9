import fc from 'fast-check';
import type { IpFamily } from '../../../src/core/index.ts';
import type { KubeObject } from '../../../src/kube/index.ts';
import { type ExplainWorld, on, served } from './explain-world.ts';

// Services with nothing in the way of them, and connections to them by every kind of address.

/** A connection, and the Service it goes to. */
export interface Healthy {
  readonly index: number;
  readonly family: IpFamily;
  readonly protocol: 'TCP' | 'UDP';
  readonly ips: readonly ('web' | 'web2')[];
  readonly from: 'client' | 'web' | 'node' | 'outside';
  readonly via: 'cluster-ip' | 'external-ip' | 'node-port' | 'pod';
  readonly affinity: boolean;
  readonly external: 'Cluster' | 'Local';
}

const SERVICES = 24;
const [FIRST_NODE_PORT, PORT] = [31_000, 80];

const services = fc.record({
  family: fc.constantFrom<IpFamily[]>('IPv4', 'IPv6'),
  protocol: fc.constantFrom<('TCP' | 'UDP')[]>('TCP', 'TCP', 'UDP'),
  ips: fc.constantFrom<Healthy['ips'][]>(['web'], ['web2'], ['web', 'web2']),
  affinity: fc.boolean(),
  external: fc.constantFrom<Healthy['external'][]>('Cluster', 'Cluster', 'Local'),
});
const drawn = fc.sample(services, SERVICES);

const ways = fc.record({
  index: fc.nat(SERVICES - 1),
  from: fc.constantFrom<Healthy['from'][]>('client', 'web', 'node', 'outside'),
  via: fc.constantFrom<Healthy['via'][]>('cluster-ip', 'cluster-ip', 'external-ip', 'node-port', 'node-port', 'pod'),
});

/** From outside only addresses lead here that are the node's own. */
export function healthyCases(count: number): readonly Healthy[] {
  return fc.sample(ways, count).map(({ index, from, via }) => ({
    ...drawn[index]!,
    index,
    from,
    via: from === 'outside' ? 'node-port' : via,
  }));
}

export function healthyObjects({ node, ...pods }: ExplainWorld): KubeObject[] {
  return drawn.flatMap(({ family, protocol, ips, affinity, external }, index) =>
    served(
      `healthy/service-${index}`,
      address('cluster-ip', family, index),
      ips.map((name) => on(node, pods[name].ip(family))),
      {
        type: 'NodePort',
        ports: [{ port: PORT, protocol, nodePort: FIRST_NODE_PORT + index }],
        externalIPs: [address('external-ip', family, index)],
        externalTrafficPolicy: external,
        ...(affinity && { sessionAffinity: 'ClientIP' }),
      },
    ),
  );
}

/** Who connects, and to where. */
export function placeOf(
  { from, via, family, index, ips }: Healthy,
  world: ExplainWorld,
): { readonly source: string; readonly ip: string; readonly port: number } {
  const source = world[from].ip(family);
  switch (via) {
    case 'pod':
      return { source, ip: world[ips[0]!].ip(family), port: 8080 };
    case 'node-port':
      return { source, ip: world.node.ip(family), port: FIRST_NODE_PORT + index };
    default:
      return { source, ip: address(via, family, index), port: PORT };
  }
}

function address(via: 'cluster-ip' | 'external-ip', family: IpFamily, index: number): string {
  const net = via === 'cluster-ip' ? 8 : 9;
  if (family === 'IPv6') return `fd00:96::${net}:${index + 1}`;
  return via === 'cluster-ip' ? `10.96.${net}.${index + 1}` : `203.0.113.${index + 1}`;
}
