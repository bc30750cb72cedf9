import { HEADLESS_LABEL, SERVICE_NAME_LABEL, SERVICE_PROXY_NAME_LABEL } from './known-names.ts';
import type { KubeObject } from './types.ts';

// Which objects are the proxy's business: the label and field selectors of kube-proxy's watches. An API server applies them
// itself; an object that stops matching then arrives as a deletion, and one that starts to match as an addition.

/** The value of `spec.clusterIP` that makes a Service headless. */
export const HEADLESS_CLUSTER_IP = 'None';

/**
 * Whether the proxy looks at this object at all.
 *
 * @param serviceProxyName the value of the label by which Services choose this proxy; empty: those without the label
 */
export function isSelected(object: KubeObject, serviceProxyName = ''): boolean {
  switch (object.kind) {
    case 'Service':
      return isForProxy(object, serviceProxyName) && object.spec.clusterIP !== HEADLESS_CLUSTER_IP;
    case 'EndpointSlice':
      return !hasLabel(object, HEADLESS_LABEL);
    case 'Node':
    case 'ServiceCIDR':
      return true;
  }
}

/** The Service (`namespace/name`) a slice belongs to; undefined when no label says so. */
export function serviceOfSlice({ metadata }: Pick<KubeObject, 'metadata'>): string | undefined {
  const name = metadata.labels?.[SERVICE_NAME_LABEL];
  return name ? `${metadata.namespace}/${name}` : undefined;
}

/** A label with an empty value is a label: such a Service is for nobody here. */
function isForProxy(service: KubeObject, serviceProxyName: string): boolean {
  if (serviceProxyName === '') return !hasLabel(service, SERVICE_PROXY_NAME_LABEL);
  return service.metadata.labels?.[SERVICE_PROXY_NAME_LABEL] === serviceProxyName;
}

function hasLabel({ metadata }: KubeObject, label: string): boolean {
  return metadata.labels !== undefined && Object.hasOwn(metadata.labels, label);
}
