import type { ApiObject } from './api-object.ts';

// Objects in the API's own form, in few words.

export interface ServiceParts {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** A Service `namespace/name` with a cluster IP and port 80. */
export function apiService(key: string, { labels, annotations, spec }: ServiceParts = {}): ApiObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...nameOf(key), ...(labels && { labels }), ...(annotations && { annotations }) },
    spec: {
      type: 'ClusterIP',
      clusterIP: '10.96.0.10',
      clusterIPs: ['10.96.0.10'],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      selector: { app: nameOf(key).name },
      sessionAffinity: 'None',
      internalTrafficPolicy: 'Cluster',
      ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080 }],
      ...spec,
    },
    status: { loadBalancer: {} },
  };
}

/** An EndpointSlice `namespace/service-suffix` of the Service `namespace/service`. */
export function apiSlice(
  serviceKey: string,
  addresses: readonly string[],
  { suffix = 'a', labels = {} }: { readonly suffix?: string; readonly labels?: Readonly<Record<string, string>> } = {},
): ApiObject {
  const { namespace, name } = nameOf(serviceKey);
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${suffix}`,
      namespace,
      labels: { 'kubernetes.io/service-name': name, ...labels },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name, uid: '0', controller: true }],
    },
    addressType: 'IPv4',
    endpoints: addresses.map((address, index) => ({
      addresses: [address],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: `node-${index % 5}`,
      targetRef: { kind: 'Pod', namespace, name: `${name}-${index}`, uid: `pod-${address}` },
      zone: 'zone-a',
    })),
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
  };
}

export function apiEndpoints(
  serviceKey: string,
  subsets: readonly Readonly<Record<string, unknown>>[],
  labels: Readonly<Record<string, string>> = {},
): ApiObject {
  return { apiVersion: 'v1', kind: 'Endpoints', metadata: { ...nameOf(serviceKey), labels }, subsets };
}

export function apiNode(name: string, address: string | undefined = '192.0.2.1'): ApiObject {
  const addresses = [{ type: 'Hostname', address: name }];
  if (address !== '') addresses.push({ type: 'InternalIP', address });
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'topology.kubernetes.io/zone': 'zone-a' } },
    spec: { podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24'] },
    status: { addresses, nodeInfo: { kubeletVersion: 'v1.36.2' } },
  };
}

export function apiServiceCidr(name: string, cidrs: readonly string[]): ApiObject {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name }, spec: { cidrs } };
}

function nameOf(key: string): { readonly namespace: string; readonly name: string } {
  const [namespace = '', name = ''] = key.split('/');
  return { namespace, name };
}
