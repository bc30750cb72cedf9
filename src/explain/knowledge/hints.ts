import type { EndpointSlice } from '../../kube/index.ts';

/**
 * Why topology hints of a Service do not narrow its endpoints, although some have hints (KEP-2433); null: none have, or they do.
 */
export function whyHintsAreIgnored(
  slices: readonly EndpointSlice[],
  { zone, nodeName }: { readonly zone: string; readonly nodeName: string },
): string | null {
  const ready = slices.flatMap(({ endpoints = [] }) => endpoints).filter(({ conditions }) => conditions?.ready ?? true);
  const zones = ready.map(({ hints }) => hints?.forZones?.map(({ name }) => name) ?? []);
  const nodes = ready.map(({ hints }) => hints?.forNodes?.map(({ name }) => name) ?? []);
  const hinted = zones.filter(({ length }) => length > 0).length;
  if (hinted === 0 || nodes.every((names) => names.length > 0 && names.includes(nodeName))) return null;
  if (hinted < zones.length) return `${zones.length - hinted} of ${zones.length} ready endpoints have no hint`;
  if (zone === '') return 'this node has no label topology.kubernetes.io/zone';
  if (!zones.some((names) => names.includes(zone))) return `no endpoint is hinted for the zone of this node, ${zone}`;
  return null;
}
