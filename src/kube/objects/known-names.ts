// Labels and annotations something here reads. All others are dropped when an object is decoded: somebody may write a
// megabyte of them. What is to be read has to be named here.

/** The label that ties an EndpointSlice to its Service. */
export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
/** Names the proxy that serves this Service; without it, the one that has no name of its own does. */
export const SERVICE_PROXY_NAME_LABEL = 'service.kubernetes.io/service-proxy-name';
/** Present with any value: the slice belongs to a headless Service. */
export const HEADLESS_LABEL = 'service.kubernetes.io/headless';
/** Of a Node: the zone it is in. */
export const ZONE_LABEL = 'topology.kubernetes.io/zone';

/** Of a Service: how mode ipvs balances it. */
export const IPVS_SCHEDULER_ANNOTATION = 'nodeplane.io/ipvs-scheduler';
/** Set by the endpoint-slice controller: when the first change that led to this version of the slice happened. */
export const TRIGGER_TIME_ANNOTATION = 'endpoints.kubernetes.io/last-change-trigger-time';

/** Of a Node: the mode in which its proxy runs, in place of the configured one. */
export const PROXY_MODE_ANNOTATION = 'nodeplane.io/proxy-mode';
/** Of a Node, written by its agent: what it ran before, and how far the move is. */
export const MIGRATION_ANNOTATION = 'nodeplane.io/migration';

/**
 * Of a Node: what flannel tells the other nodes about it, and they about us
 * (pkg/subnet/kube/annotations.go of flannel; the prefix is its --kube-annotation-prefix).
 */
export const FLANNEL_ANNOTATIONS = {
  /** `"true"`: the node takes part. */
  managed: 'flannel.alpha.coreos.com/kube-subnet-manager',
  backendType: 'flannel.alpha.coreos.com/backend-type',
  /** JSON text, or `null`: what the backend needs to reach the node's IPv4 pods. */
  backendData: 'flannel.alpha.coreos.com/backend-data',
  backendV6Data: 'flannel.alpha.coreos.com/backend-v6-data',
  publicIp: 'flannel.alpha.coreos.com/public-ip',
  publicIpv6: 'flannel.alpha.coreos.com/public-ipv6',
} as const;

/** Of a Node: what others need to send it packets for its pods by WireGuard. */
export const WIREGUARD_ANNOTATIONS = {
  /** As `wg` prints it: base64, 44 characters. */
  publicKey: 'nodeplane.io/wireguard-public-key',
  /** UDP port; without it, the one of who reads it. */
  port: 'nodeplane.io/wireguard-port',
} as const;
/** Of a Node: pod CIDRs it had before it was registered again, of which pods still live; separated by commas. */
export const FORMER_POD_CIDRS_ANNOTATION = 'nodeplane.io/former-pod-cidrs';
/** Of a Node: its FLANNEL_ANNOTATIONS were written by nodeplane, and may be taken away by it. */
export const OUR_FLANNEL_ANNOTATION = 'nodeplane.io/writes-flannel-annotations';

/**
 * Of a Node: whether it has no network, which keeps pods away from it. Set by whoever runs the cloud, cleared by who
 * makes the network.
 */
export const NETWORK_UNAVAILABLE = 'NetworkUnavailable';

/** Conditions of a Node that are read; the others tell of the kubelet. */
export const KNOWN_CONDITIONS: ReadonlySet<string> = new Set([NETWORK_UNAVAILABLE]);

/** Of the bookmark that ends the initial events of a streaming list (KEP-3157), and of no object. */
export const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

export const KNOWN_LABELS: ReadonlySet<string> = new Set([
  SERVICE_NAME_LABEL,
  SERVICE_PROXY_NAME_LABEL,
  HEADLESS_LABEL,
  ZONE_LABEL,
]);

export const KNOWN_ANNOTATIONS: ReadonlySet<string> = new Set([
  IPVS_SCHEDULER_ANNOTATION,
  TRIGGER_TIME_ANNOTATION,
  ...Object.values(FLANNEL_ANNOTATIONS),
  ...Object.values(WIREGUARD_ANNOTATIONS),
  FORMER_POD_CIDRS_ANNOTATION,
  OUR_FLANNEL_ANNOTATION,
  PROXY_MODE_ANNOTATION,
  MIGRATION_ANNOTATION,
]);
