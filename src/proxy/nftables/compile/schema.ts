import type { IpFamily } from '../../../core/index.ts';
import { type DatatypeName, type NftSet, nftFamily } from '../../../netlink/nftables/index.ts';
import type { ServicePortPlan } from '../../index.ts';
import { type FixedSetName, SETS, type StickyMaps } from './names.ts';

// The sets and maps: what their keys and values are.

/** A set before it is put into a table. */
export type SetBody = Pick<NftSet, 'key' | 'data' | 'flags' | 'size' | 'timeoutMs' | 'comment'>;

/** Clients one Service port remembers at most; who comes later is balanced without affinity. kube-proxy: 65,536 an endpoint. */
const AFFINITY_SIZE = 262_144;

function types(family: IpFamily) {
  const address: DatatypeName = family === 'IPv4' ? 'ipv4_addr' : 'ipv6_addr';
  const port = ['inet_proto', 'inet_service'] as const satisfies DatatypeName[];
  const vip = [address, ...port];
  const endpoint: DatatypeName[] = [address, 'inet_service'];
  return { address, port, vip, endpoint };
}

/** The sets every table of ours has, by name. */
export function fixedSets(family: IpFamily): Readonly<Record<FixedSetName, SetBody>> {
  const { address, port, vip, endpoint } = types(family);
  const vipEndpoint = { key: [...vip, 'integer'], data: endpoint } as const;
  const portEndpoint = { key: [...port, 'integer'], data: endpoint } as const;
  const verdict = 'verdict';
  return {
    [SETS.services]: {
      key: vip,
      data: verdict,
      comment: 'Cluster IPs, external IPs, load-balancer IPs: how many endpoints',
    },
    [SETS.nodePorts]: { key: port, data: verdict, comment: 'NodePorts: how many endpoints' },
    [SETS.endpoints]: { ...vipEndpoint, comment: 'destination . slot : endpoint' },
    [SETS.localEndpoints]: { ...vipEndpoint, comment: 'the same, policy Local: endpoints on this node' },
    [SETS.nodePortEndpoints]: { ...portEndpoint, comment: 'NodePort . slot : endpoint' },
    [SETS.nodePortLocalEndpoints]: { ...portEndpoint, comment: 'the same, policy Local: endpoints on this node' },
    [SETS.shortCircuit]: { key: vip, data: verdict, comment: 'policy Local: where pods and this node go instead' },
    [SETS.nodePortShortCircuit]: { key: port, data: verdict, comment: 'the same for NodePorts' },
    [SETS.noEndpointServices]: { key: vip, data: verdict, comment: 'refused for lack of endpoints' },
    [SETS.noEndpointNodePorts]: { key: port, data: verdict, comment: 'refused for lack of endpoints' },
    [SETS.restrictedVips]: { key: vip, comment: 'load-balancer IPs with source ranges' },
    [SETS.allowedSources]: {
      key: [...vip, address],
      flags: ['interval'],
      comment: 'load-balancer IP . who may use it',
    },
    [SETS.clusterIps]: { key: [address], comment: 'cluster IPs of all Services' },
    [SETS.nodePortIps]: { key: [address], comment: 'where NodePorts answer, unless everywhere' },
  };
}

/** The maps of a Service port with ClientIP affinity, by name. */
export function stickySets(
  family: IpFamily,
  names: StickyMaps,
  { affinitySeconds }: Pick<ServicePortPlan, 'affinitySeconds'>,
): [string, SetBody][] {
  const { address, endpoint } = types(family);
  return [
    [names.endpoints, { key: ['integer'], data: endpoint }],
    [names.choices, { key: ['integer'], data: ['inet_proto', ...endpoint] }],
    [
      names.affinity,
      {
        key: [address],
        data: endpoint,
        flags: ['timeout', 'dynamic'],
        size: AFFINITY_SIZE,
        timeoutMs: affinitySeconds * 1000,
      },
    ],
  ];
}

/** Whether the elements of a set are written by the path of packets, not by us. */
export function isAffinity(set: Pick<SetBody, 'flags'>): boolean {
  return set.flags?.includes('dynamic') ?? false;
}

/** The set as an object of the kernel, in a table. */
export function placeSet(family: IpFamily, table: string, name: string, body: SetBody): NftSet {
  return { kind: 'set', family: nftFamily(family), table, name, ...body };
}
