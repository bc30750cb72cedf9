import type { KubeKind } from '../../objects/types.ts';

/** The fields that an object may have, and what is known of the fields below some of them. Of a list: of its items. */
export interface KnownFields {
  readonly names: ReadonlySet<string>;
  /** Only what holds fields that are read: nobody looks for mistakes in `managedFields`. */
  readonly below: ReadonlyMap<string, KnownFields>;
}

function fields(names: string, below: Readonly<Record<string, KnownFields>> = {}): KnownFields {
  const inner = new Map(Object.entries(below));
  return { names: new Set([...names.split(' ').filter(Boolean), ...inner.keys()]), below: inner };
}

const METADATA = fields(
  'annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName generation labels ' +
    'managedFields name namespace ownerReferences resourceVersion selfLink uid',
);

function object(below: Readonly<Record<string, KnownFields>>, names = ''): KnownFields {
  return fields(`apiVersion kind ${names}`, { metadata: METADATA, ...below });
}

const SERVICE = object({
  spec: fields(
    'allocateLoadBalancerNodePorts clusterIP clusterIPs externalIPs externalName externalTrafficPolicy healthCheckNodePort ' +
      'internalTrafficPolicy ipFamilies ipFamilyPolicy loadBalancerClass loadBalancerIP loadBalancerSourceRanges ' +
      'publishNotReadyAddresses selector sessionAffinity trafficDistribution type',
    {
      ports: fields('appProtocol name nodePort port protocol targetPort'),
      sessionAffinityConfig: fields('', { clientIP: fields('timeoutSeconds') }),
    },
  ),
  status: fields('conditions', { loadBalancer: fields('', { ingress: fields('hostname ip ipMode ports') }) }),
});

const ENDPOINT_SLICE = object(
  {
    endpoints: fields('addresses deprecatedTopology hostname nodeName targetRef zone', {
      conditions: fields('ready serving terminating'),
      hints: fields('', { forNodes: fields('name'), forZones: fields('name') }),
    }),
    ports: fields('appProtocol name port protocol'),
  },
  'addressType',
);

const NODE = object({
  spec: fields('configSource externalID podCIDR podCIDRs providerID unschedulable', {
    taints: fields('effect key timeAdded value'),
  }),
  status: fields(
    'allocatable capacity conditions config daemonEndpoints declaredFeatures features images nodeInfo phase runtimeHandlers ' +
      'volumesAttached volumesInUse',
    { addresses: fields('address type') },
  ),
});

/**
 * By kind, every field of the API (v1.34.0, and Node's `declaredFeatures` of 1.35), read or not; of PodCIDRBlock those of
 * deploy/crds. known-fields.test.ts holds it to the schemas.
 */
export const KNOWN_FIELDS: Readonly<Record<KubeKind, KnownFields>> = {
  Service: SERVICE,
  EndpointSlice: ENDPOINT_SLICE,
  Node: NODE,
  ServiceCIDR: object({ spec: fields('cidrs') }, 'status'),
  PodCIDRBlock: object({ spec: fields('cidr claimedAt holder node nodeUID pool renewedAt state') }),
};
