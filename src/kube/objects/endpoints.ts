import { isIPv6 } from 'node:net';
import { IP_FAMILIES, isMapping } from '../../core/index.ts';
import { SERVICE_NAME_LABEL } from './known-names.ts';

type Json = Readonly<Record<string, unknown>>;

/**
 * Turns a core/v1 Endpoints object into EndpointSlices, as JSON that still has to be decoded. A subset makes a slice for
 * each family it has addresses of, because the ports of a slice hold for all of its endpoints: `web-ipv4`,
 * `web-ipv6`, and from the second subset on `web-ipv4-1`. An Endpoints object has the name of its Service.
 */
export function slicesOfEndpoints(value: unknown): readonly Json[] {
  const { metadata, subsets } = isMapping(value) ? value : {};
  if (!isMapping(metadata)) return [];
  return listOf(subsets).flatMap((subset, index) => slicesOfSubset(metadata, subset, index));
}

function slicesOfSubset(metadata: Json, subset: Json, index: number): readonly Json[] {
  const endpoints = [
    ...listOf(subset.addresses).map((address) => endpointOf(address, { ready: true })),
    ...listOf(subset.notReadyAddresses).map((address) => endpointOf(address, { ready: false })),
  ];
  const suffix = index === 0 ? '' : `-${index}`;
  return IP_FAMILIES.flatMap((family) => {
    const ofFamily = endpoints.filter((endpoint) => familyOf(endpoint) === family);
    if (ofFamily.length === 0) return [];
    return {
      metadata: {
        name: `${metadata.name}-${family.toLowerCase()}${suffix}`,
        namespace: metadata.namespace,
        labels: { ...(isMapping(metadata.labels) && metadata.labels), [SERVICE_NAME_LABEL]: metadata.name },
        annotations: metadata.annotations,
        deletionTimestamp: metadata.deletionTimestamp,
      },
      addressType: family,
      endpoints: ofFamily,
      // Port names may be left out in Endpoints; in a slice such a port would belong to no Service port.
      ports: listOf(subset.ports).map(({ name = '', port, protocol }) => ({ name, port, protocol })),
    };
  });
}

/** Endpoints do not tell terminating pods from others that are not ready. */
function endpointOf(address: Json, { ready }: { readonly ready: boolean }): Json {
  const conditions = { ready, serving: ready, terminating: false };
  return { addresses: [address.ip], conditions, nodeName: address.nodeName };
}

/** Whatever is no IPv6 address goes to IPv4, whose decoder says what is wrong with it. */
function familyOf({ addresses }: Json): 'IPv4' | 'IPv6' {
  const [address] = addresses as readonly unknown[];
  return typeof address === 'string' && isIPv6(address) ? 'IPv6' : 'IPv4';
}

/** The mappings of a list; what is none is left out. */
function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isMapping) : [];
}
