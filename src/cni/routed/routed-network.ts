import type { PodNetwork } from '../link/pod-network.ts';
import { connectRouted } from './connect-routed.ts';
import { routedAddressing } from './routed-addressing.ts';

/** Mode `routed`: each pod has a link and routes of its own on the node, which is its only neighbour. */
export const routedNetwork: PodNetwork = {
  addressing: routedAddressing,
  checkNode: () => [],
  connect: connectRouted,

  async check(checking, hostLink) {
    const { checkRouted } = await import('./check-routed.ts');
    checkRouted(checking, hostLink);
    return undefined;
  },

  checkPods: () => undefined,
};
