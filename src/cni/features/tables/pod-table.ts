import { IP_FAMILIES, type IpFamily } from '../../../core/index.ts';
import type { NftSet, SetRef, TableRef } from '../../../netlink/nftables/index.ts';

/*
 * The nftables table behind ipMasq, portMappings and ingressPolicy. Its rules are fixed (pod-chains.ts); what belongs to an
 * attachment are elements of its sets, each with a comment that names it. `nft list table inet nodeplane-cni` shows all of it.
 */

export const POD_TABLE: TableRef = { kind: 'table', family: 'inet', name: 'nodeplane-cni' };

/** What elements there are; each kind has a set for either family. */
export type PodSetKind = 'masquerade' | 'ports' | 'address-ports' | 'hairpin' | 'ingress-policy' | 'ingress-isolated';

/** Names one of the sets. */
export function podSet(kind: PodSetKind, family: IpFamily): SetRef {
  return { kind: 'set', family: POD_TABLE.family, table: POD_TABLE.name, name: `${kind}-${family.toLowerCase()}` };
}

/** Names the sets of these kinds. */
export function podSets(kinds: readonly PodSetKind[]): SetRef[] {
  return kinds.flatMap((kind) => IP_FAMILIES.map((family) => podSet(kind, family)));
}

/** All sets. */
export const POD_SETS: readonly NftSet[] = IP_FAMILIES.flatMap((family): NftSet[] => {
  const address = family === 'IPv4' ? 'ipv4_addr' : 'ipv6_addr';
  return [
    // Address of a pod -> the chain that decides about what it sends.
    { ...podSet('masquerade', family), key: [address], data: 'verdict' },
    // Protocol, port of the node -> address and port of the pod.
    { ...podSet('ports', family), key: ['inet_proto', 'inet_service'], data: [address, 'inet_service'] },
    // The same for mappings of one address of the node.
    {
      ...podSet('address-ports', family),
      key: [address, 'inet_proto', 'inet_service'],
      data: [address, 'inet_service'],
    },
    // Protocol, port of the node, address of the pod, and the clients that the pod's answers would not find back to.
    { ...podSet('hairpin', family), key: ['inet_proto', 'inet_service', address, address], flags: ['interval'] },
    // Link through which the node reaches a pod, address of the pod: those with an ingress policy, and those with the
    // policy `isolated`.
    { ...podSet('ingress-policy', family), key: ['ifname', address] },
    { ...podSet('ingress-isolated', family), key: ['ifname', address] },
  ];
});
