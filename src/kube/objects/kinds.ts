import { isMapping } from '../../core/index.ts';
import { serviceSpec, serviceStatus } from './decode-service.ts';
import { sliceReader } from './decode-slice.ts';
import { listOf, oneOf, type Reader, record, required, text } from './field-reader.ts';
import {
  clusterScoped,
  clusterScopedWithUid,
  clusterScopedWithVersion,
  namespaced,
  namespacedWithAge,
  type ObjectKind,
} from './kind.ts';
import { KNOWN_CONDITIONS } from './known-names.ts';
import { ENDPOINT_SLICE, NODE, SERVICE, SERVICE_CIDR } from './protobuf/kinds.ts';
import type { KubeKind, Node, NodeCondition, PodCIDRBlock, Service, ServiceCIDR } from './types.ts';
import { cidr, cidrOrEmpty, dnsSubdomain } from './value-readers.ts';

type NodeSpec = NonNullable<Node['spec']>;
type NodeStatus = NonNullable<Node['status']>;

/** Those that somebody reads: a Node has five of the kubelet, and whatever others add, right or wrong. */
const nodeConditions: Reader<readonly NodeCondition[]> = (value) => {
  const all: readonly unknown[] = Array.isArray(value) ? value : [];
  const known = all.flatMap((entry) => {
    const { type, status } = isMapping(entry) ? entry : {};
    const isRead = typeof type === 'string' && KNOWN_CONDITIONS.has(type) && typeof status === 'string';
    return isRead ? [{ type, status }] : [];
  });
  return known.length > 0 ? known : undefined;
};

/** Every kind of objects that is read. A source reads those of its resources, and no others. */
export const KINDS: { readonly [K in KubeKind]: ObjectKind<K> } = {
  Node: {
    kind: 'Node',
    apiVersion: 'v1',
    namespaced: false,
    message: NODE,
    read: record<Omit<Node, 'kind'>>({
      metadata: required(clusterScopedWithUid),
      spec: record<NodeSpec>({
        podCIDR: cidrOrEmpty,
        podCIDRs: listOf(cidr),
        taints: listOf(
          record<{ readonly key: string; readonly effect?: string }>({ key: required(text), effect: text }),
        ),
      }),
      status: record<NodeStatus>({
        addresses: listOf(
          record<{ readonly type: string; readonly address: string }>({
            type: required(text),
            address: required(text),
          }),
        ),
        conditions: nodeConditions,
      }),
    }),
  },
  ServiceCIDR: {
    kind: 'ServiceCIDR',
    apiVersion: 'networking.k8s.io/v1',
    namespaced: false,
    message: SERVICE_CIDR,
    read: record<Omit<ServiceCIDR, 'kind'>>({
      metadata: required(clusterScoped),
      spec: record<NonNullable<ServiceCIDR['spec']>>({ cidrs: listOf(cidr) }),
    }),
  },
  Service: {
    kind: 'Service',
    apiVersion: 'v1',
    namespaced: true,
    message: SERVICE,
    read: record<Omit<Service, 'kind'>>({
      metadata: required(namespacedWithAge),
      spec: required(serviceSpec),
      status: serviceStatus,
    }),
  },
  EndpointSlice: {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    namespaced: true,
    message: ENDPOINT_SLICE,
    read: sliceReader(namespaced),
  },
  PodCIDRBlock: {
    kind: 'PodCIDRBlock',
    apiVersion: 'nodeplane.io/v1alpha1',
    namespaced: false,
    read: record<Omit<PodCIDRBlock, 'kind'>>({
      metadata: required(clusterScopedWithVersion),
      spec: required(
        record<PodCIDRBlock['spec']>({
          cidr: required(cidr),
          node: required(dnsSubdomain),
          state: oneOf('pending', 'confirmed', 'releasing'),
          nodeUID: text,
          holder: text,
        }),
      ),
    }),
  },
};
