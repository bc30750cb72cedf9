import { elementFeature } from './tables/element-feature.ts';
import { INGRESS_CHAIN, POD_LAYOUT } from './tables/pod-chains.ts';
import { ingressElements } from './tables/pod-elements.ts';
import { podSets } from './tables/pod-table.ts';

/**
 * ingressPolicy: what pods of other bridges send to a pod (`same-bridge`), or of its own, too (`isolated`), is dropped where
 * the node forwards it; as with the reference firewall plugin, this is among pods that have a policy. What does not pass
 * through the node, because two pods are ports of one bridge, the bridge keeps apart (`portIsolation`).
 */
export const ingressPolicy = elementFeature({
  name: 'ingresspolicy',
  layout: POD_LAYOUT,
  chains: [INGRESS_CHAIN],
  sets: podSets(['ingress-policy', 'ingress-isolated']),
  elements: ingressElements,
  whenMissing: ({ features }) => `The ingress policy "${features.firewall?.ingressPolicy}" is not in force`,
});
