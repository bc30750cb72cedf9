import {
  ENDPOINT_SLICES,
  type EndpointSlice,
  HEADLESS_LABEL,
  type KubeObject,
  type Node,
  nodeNamed,
  type ObjectMeta,
  type Resource,
  SERVICE_CIDRS,
  SERVICE_NAME_LABEL,
  SERVICE_PROXY_NAME_LABEL,
  SERVICES,
  type Service,
} from '../../../kube/index.ts';

// Which objects are the proxy's business: the label and field selectors of kube-proxy's watches, once for the API server and
// once for the objects themselves. An object that stops matching arrives from an API server as a deletion, and one that
// starts to match as an addition.

/** The value of `spec.clusterIP` that makes a Service headless. */
const HEADLESS_CLUSTER_IP = 'None';

/**
 * The resources the proxy works from, the ones others depend on first.
 *
 * @param nodeName the Node this process runs on
 * @param serviceProxyName see `isForProxy`
 */
export function proxyResources(nodeName: string, serviceProxyName: string): readonly Resource[] {
  const label = SERVICE_PROXY_NAME_LABEL;
  const node: Resource<'Node'> = {
    ...nodeNamed(nodeName),
    // As kube-proxy waits for its Node to exist and to have an address.
    awaited: {
      object: `Node ${nodeName}`,
      isReady: (object) => object.kind === 'Node' && hasAddress(object),
      absence: 'This node does not exist in the API or has no address; check its name (--hostname-override)',
    },
  };
  const services: Resource<'Service'> = {
    ...SERVICES,
    essential: true,
    query: {
      labelSelector: serviceProxyName === '' ? `!${label}` : `${label}=${serviceProxyName}`,
      fieldSelector: `spec.clusterIP!=${HEADLESS_CLUSTER_IP}`,
    },
  };
  const slices: Resource<'EndpointSlice'> = {
    ...ENDPOINT_SLICES,
    essential: true,
    query: { labelSelector: `!${HEADLESS_LABEL}` },
  };
  return [node, SERVICE_CIDRS, services, slices];
}

/**
 * Whether this proxy serves the Service.
 *
 * @param serviceProxyName the value of the label by which Services choose this proxy; empty: those without the label
 */
export function isForProxy(service: Service, serviceProxyName: string): boolean {
  return hasProxyName(service, serviceProxyName) && service.spec.clusterIP !== HEADLESS_CLUSTER_IP;
}

/** Whether the slice is of a Service that a proxy may serve: not of a headless one, and not of none. */
export function isOfService(slice: EndpointSlice): boolean {
  return !hasLabel(slice, HEADLESS_LABEL) && serviceOfSlice(slice) !== undefined;
}

/** The Service (`namespace/name`) a slice belongs to; undefined when no label says so. */
export function serviceOfSlice({ metadata }: { readonly metadata: ObjectMeta }): string | undefined {
  const name = metadata.labels?.[SERVICE_NAME_LABEL];
  return name ? `${metadata.namespace}/${name}` : undefined;
}

/** A label with an empty value is a label: such a Service is for nobody here. */
function hasProxyName(service: Service, serviceProxyName: string): boolean {
  if (serviceProxyName === '') return !hasLabel(service, SERVICE_PROXY_NAME_LABEL);
  return service.metadata.labels?.[SERVICE_PROXY_NAME_LABEL] === serviceProxyName;
}

function hasLabel({ metadata }: KubeObject, label: string): boolean {
  return metadata.labels !== undefined && Object.hasOwn(metadata.labels, label);
}

function hasAddress({ status }: Node): boolean {
  return status?.addresses?.some(({ type }) => type === 'InternalIP' || type === 'ExternalIP') ?? false;
}
