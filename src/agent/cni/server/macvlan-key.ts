import type { MacvlanSettings } from '../../../config/index.ts';
import { addressBits, formatCidr } from '../../../core/index.ts';
import { internalIpsOf, type Node, type ServiceCIDR } from '../../../kube/index.ts';

/** What the agent knows of its cluster, as far as pods with a second interface need routes to it. */
export interface ClusterNetworks {
  readonly node: Node | undefined;
  readonly serviceCidrs: Iterable<ServiceCIDR>;
  /** Whether every object that existed at the start was told. */
  readonly isComplete: boolean;
}

/**
 * Key `macvlan` of a network's configuration: the operator's settings, and as routes what pods must go on reaching through the
 * pod network: the node's addresses, the Service CIDRs, and what the operator adds. The routes are null while they are not
 * known: then a pod that asks for the interface has to wait.
 */
export function macvlanKey(settings: MacvlanSettings, { node, serviceCidrs, isComplete }: ClusterNetworks): object {
  const nodeIps = internalIpsOf(node).map((address) =>
    formatCidr({ address, prefixLength: addressBits(address.family) }),
  );
  const ofServices = [...serviceCidrs].flatMap(({ spec }) => spec?.cidrs ?? []);
  const routes = [...settings.routes.map(formatCidr), ...nodeIps, ...ofServices];
  return { ...settings, routes: isComplete ? routes : null };
}
