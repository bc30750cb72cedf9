import { slicesOfEndpoints } from './objects/endpoints.ts';
import { KINDS } from './objects/kinds.ts';
import { slimSlice } from './objects/slim.ts';
import type { Resource } from './resource.ts';

// The resources that are read, without selectors: which of the objects are wanted is their consumer's to say.

export const NODES: Resource<'Node'> = {
  name: 'nodes',
  kind: KINDS.Node,
  query: {},
};

/** The Node of this name, and no other. */
export function nodeNamed(name: string): Resource<'Node'> {
  return { ...NODES, query: { fieldSelector: `metadata.name=${name}` } };
}

/** Stable since Kubernetes 1.33. */
export const SERVICE_CIDRS: Resource<'ServiceCIDR'> = {
  name: 'servicecidrs',
  kind: KINDS.ServiceCIDR,
  query: {},
  optional: true,
};

export const SERVICES: Resource<'Service'> = {
  name: 'services',
  kind: KINDS.Service,
  query: {},
};

/** From servers that do not have EndpointSlices, Endpoints are read instead. */
export const ENDPOINT_SLICES: Resource<'EndpointSlice'> = {
  name: 'endpointslices',
  kind: KINDS.EndpointSlice,
  query: {},
  substitute: { name: 'endpoints', kind: 'Endpoints', apiVersion: 'v1', expand: slicesOfEndpoints },
  slim: slimSlice,
};

/** The blocks of all nodes. Which range is free can be said only by who knows them all. */
export const POD_CIDR_BLOCKS: Resource<'PodCIDRBlock'> = {
  name: 'podcidrblocks',
  kind: KINDS.PodCIDRBlock,
  query: {},
  essential: true,
};
