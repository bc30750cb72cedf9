// How much one object, and all of them together, may ask of this node. Anybody who may write Services and EndpointSlices of
// one namespace decides how large they are, and the API server accepts objects a thousand times larger than useful ones.
// What lies beyond is left out, in an order that depends on the objects alone, and told: log, Event and metric.

/** Each bound with its reason. All are per Service and family unless the comment says otherwise. */
export const LIMITS = {
  /** A port is a rule or more in every mode. The largest Services in use have some hundreds (media servers). */
  ports: 1000,
  /** External IPs, and as many load-balancer VIPs. Somebody may list the front of every rack of a large cluster. */
  addresses: 1000,
  /** Ports x addresses, ClusterIP included: each is owned and programmed by itself. */
  destinations: 5000,
  /** loadBalancerSourceRanges: those of a large country are some thousands. */
  sourceRanges: 8000,
  /** Source ranges x VIPs x ports: mode nftables has an element for each. */
  allowedSources: 8_000,
  /**
   * Endpoints x ports. Kubernetes is tested with 5,000 endpoints a Service, which three ports make 15,000. So many are
   * planned within 50 ms and take less than 10 MiB.
   */
  endpoints: 20_000,
  /** Endpoints x the destinations that lead to them: mode nftables has an element for each. */
  endpointElements: 100_000,
  /**
   * Ports of slices looked at to find those of the Service. A slice of the controller has the ports of its Service and no
   * others; the API server accepts 20,000 in each.
   */
  slicePorts: 200_000,
  /** Endpoints x ports of all Services: three for each pod of the largest cluster Kubernetes is tested with (150,000). */
  endpointsOfNode: 450_000,
  /** Addresses of the API server that are believed: whoever may write slices in `default` could list anybody's. */
  apiServers: 32,
  /** Texts about one Service: somebody should be able to read them. */
  problems: 20,
} as const;
