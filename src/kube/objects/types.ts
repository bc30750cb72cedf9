// Kubernetes objects as the API serves them, with only the fields nodeplane reads. Optional means optional in the API:
// what a missing field means is decided where it is used (proxy/plan/service-port.ts, proxy/plan/endpoint.ts).

/** Transport protocols of Services; the API has no others. */
export type Protocol = 'TCP' | 'UDP' | 'SCTP';

/** metadata, as far as anything here reads it. */
export interface ObjectMeta {
  readonly name: string;
  /** Empty string for cluster-scoped objects (Node, ServiceCIDR, PodCIDRBlock). */
  readonly namespace: string;
  /** Those of known-names.ts. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Those of known-names.ts. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** RFC 3339. Services, Nodes and PodCIDRBlocks only: the older of two keeps an address both want. */
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  /** Nodes and PodCIDRBlocks only: differs for every object that ever had the name. Missing in manifests. */
  readonly uid?: string;
  /** PodCIDRBlocks only: what a compare-and-swap needs. Missing in manifests. */
  readonly resourceVersion?: string;
}

/** core/v1 Service */
export interface Service {
  readonly kind: 'Service';
  readonly metadata: ObjectMeta;
  readonly spec: ServiceSpec;
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly LoadBalancerIngress[] } };
}

/** spec of a Service, as far as a proxy reads it. */
export interface ServiceSpec {
  /** @default ClusterIP */
  readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  readonly clusterIP?: string;
  readonly clusterIPs?: readonly string[];
  readonly ipFamilies?: readonly ('IPv4' | 'IPv6')[];
  readonly ports?: readonly ServicePortSpec[];
  readonly externalIPs?: readonly string[];
  readonly externalTrafficPolicy?: 'Cluster' | 'Local';
  readonly internalTrafficPolicy?: 'Cluster' | 'Local';
  readonly sessionAffinity?: 'None' | 'ClientIP';
  readonly sessionAffinityConfig?: { readonly clientIP?: { readonly timeoutSeconds?: number } };
  readonly loadBalancerSourceRanges?: readonly string[];
  readonly healthCheckNodePort?: number;
}

/** One of spec.ports of a Service. */
export interface ServicePortSpec {
  /** Empty or missing when the Service has a single unnamed port. */
  readonly name?: string;
  /** @default TCP */
  readonly protocol?: Protocol;
  readonly port: number;
  readonly nodePort?: number;
}

/** One of status.loadBalancer.ingress of a Service. */
export interface LoadBalancerIngress {
  readonly ip?: string;
  readonly ipMode?: 'VIP' | 'Proxy';
}

/** discovery.k8s.io/v1 EndpointSlice */
export interface EndpointSlice {
  readonly kind: 'EndpointSlice';
  readonly metadata: ObjectMeta;
  readonly addressType: 'IPv4' | 'IPv6' | 'FQDN';
  readonly endpoints?: readonly SliceEndpoint[];
  readonly ports?: readonly SlicePort[];
}

/** One of endpoints of an EndpointSlice. */
export interface SliceEndpoint {
  readonly addresses?: readonly string[];
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean };
  readonly nodeName?: string;
  /** The name of the pod; in the API a reference, of which nothing else is kept. */
  readonly targetRef?: string;
  readonly hints?: {
    readonly forZones?: readonly { readonly name: string }[];
    readonly forNodes?: readonly { readonly name: string }[];
  };
}

/** One of ports of an EndpointSlice: its endpoints all have them. */
export interface SlicePort {
  readonly name?: string;
  readonly protocol?: Protocol;
  readonly port?: number;
}

/** core/v1 Node */
export interface Node {
  readonly kind: 'Node';
  readonly metadata: ObjectMeta;
  readonly spec?: {
    readonly podCIDR?: string;
    readonly podCIDRs?: readonly string[];
    readonly taints?: readonly { readonly key: string; readonly effect?: string }[];
  };
  readonly status?: {
    readonly addresses?: readonly { readonly type: string; readonly address: string }[];
    /** Those of KNOWN_CONDITIONS. */
    readonly conditions?: readonly NodeCondition[];
  };
}

/** One of status.conditions of a Node. */
export interface NodeCondition {
  readonly type: string;
  /** True, False or Unknown. */
  readonly status: string;
}

/** networking.k8s.io/v1 ServiceCIDR */
export interface ServiceCIDR {
  readonly kind: 'ServiceCIDR';
  readonly metadata: ObjectMeta;
  readonly spec?: { readonly cidrs?: readonly string[] };
}

/** nodeplane.io/v1alpha1 PodCIDRBlock (deploy/crds): addresses for the pods of one node, out of a pool of the cluster. */
export interface PodCIDRBlock {
  readonly kind: 'PodCIDRBlock';
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly cidr: string;
    /** The name of the node. */
    readonly node: string;
    /** `pending`: not yet to be used; `releasing`: no longer, and about to be deleted. @default confirmed */
    readonly state?: 'pending' | 'confirmed' | 'releasing';
    /** The UID of the Node it was claimed for. Missing in manifests. */
    readonly nodeUID?: string;
    /** The agent process that gives addresses out of it. Missing in manifests. */
    readonly holder?: string;
  };
}

/** All objects that anything here reads. */
export type KubeObject = Service | EndpointSlice | Node | ServiceCIDR | PodCIDRBlock;
/** The kind of one of them. */
export type KubeKind = KubeObject['kind'];
/** The objects of one kind. */
export type KubeObjectOf<K extends KubeKind> = Extract<KubeObject, { readonly kind: K }>;

/** `namespace/name`, or the bare name of a cluster-scoped object. */
export function objectName(object: { readonly metadata: ObjectMeta }): string {
  const { namespace, name } = object.metadata;
  return namespace === '' ? name : `${namespace}/${name}`;
}

/** `Service demo/web`: names an object among those of all kinds, and in messages. */
export function objectKey(object: KubeObject): string {
  return `${object.kind} ${objectName(object)}`;
}
